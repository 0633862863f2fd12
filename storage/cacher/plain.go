package cacher

import (
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// plain makes a storage.Source of any storage.Interface, with limits: it has no history, and one unreadable value makes the
// whole fail.
type plain struct{ storage.Interface }

var _ storage.Source = plain{}

// Oldest implements storage.Source.
func (p plain) Oldest(ctx context.Context) (int64, error) { return p.Revision(ctx) }

// State implements storage.Source.
func (p plain) State(ctx context.Context, _ int64) (storage.State, error) {
	page, err := p.List(ctx, storage.ListOptions{})
	if err != nil {
		return storage.State{}, err
	}
	return storage.State{Revision: page.Revision, Entries: func(yield func(storage.Entry, error) bool) {
		for r := range page.Records {
			if !yield(storage.Entry{Record: r}, nil) {
				return
			}
		}
	}}, nil
}

// Follow implements storage.Source.
func (p plain) Follow(ctx context.Context, from int64) (storage.Following, error) {
	w, err := p.Watch(ctx, storage.WatchOptions{From: from})
	if err != nil {
		return nil, err
	}
	return &plainFollowing{w, from}, nil
}

// Known implements storage.Source.
func (p plain) Known() (revision int64, ok bool) { return 0, false }

// Stat implements storage.Source.
func (p plain) Stat(ctx context.Context, key string) (storage.Stat, error) {
	now, err := p.Revision(ctx)
	if err != nil {
		return storage.Stat{}, err
	}
	r, err := p.Get(ctx, key, storage.Read{})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	return storage.Stat{Revision: r.Revision, At: now}, err
}

// UpdateFrom implements storage.Source.
func (p plain) UpdateFrom(ctx context.Context, from storage.Record, opts storage.WriteOptions, change storage.ChangeFunc) (storage.Record, error) {
	return p.Update(ctx, from.Key, opts, change)
}

// plainFollowing adapts a watch to storage.Following.
type plainFollowing struct {
	storage.Watch
	reached int64
}

// Next implements storage.Following.
func (f *plainFollowing) Next(ctx context.Context) (storage.Moves, error) {
	events, err := f.Watch.Next(ctx)
	if err != nil {
		return storage.Moves{}, err
	}
	var m storage.Moves
	for _, e := range events {
		if e.Record.Revision < f.reached {
			return m, fmt.Errorf("cacher: the storage below shows revision %d after %d", e.Record.Revision, f.reached)
		}
		f.reached = e.Record.Revision
		switch e.Type {
		case watch.Bookmark:
		case watch.Deleted:
			gone := storage.Record{Key: e.Record.Key, Revision: e.Record.Revision}
			m.Moves = append(m.Moves, storage.Move{Entry: storage.Entry{Record: gone}, Deleted: true})
		default:
			m.Moves = append(m.Moves, storage.Move{Entry: storage.Entry{Record: e.Record}})
		}
	}
	m.Progress = f.reached
	return m, nil
}
