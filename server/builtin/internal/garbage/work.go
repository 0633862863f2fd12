package garbage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// do does the current task of one object. attempt is the number of failures before, in a row.
func (w *worker) do(ctx context.Context, uid types.UID, attempt int) (result, error) {
	w.mu.Lock()
	t := w.graph.task(uid)
	of := w.objects[t.kind]
	w.mu.Unlock()
	if t.do == nothing || of == nil {
		return done, nil
	}
	var res result
	var err error
	switch t.do {
	case examine:
		res, err = w.examine(ctx, t, of)
	case release:
		err = w.release(ctx, t, of, attempt)
	case orphan:
		err = w.orphan(ctx, t, of)
	}
	if err != nil {
		return done, fmt.Errorf("%s %s: %w", t.kind, t.where(), err)
	}
	return res, nil
}

// examine examines an object that may have an absent or waiting owner.
func (w *worker) examine(ctx context.Context, t task, of objects) (result, error) {
	var (
		judged []metav1.OwnerReference // those of owners
		owners []standing
		res    result
	)
	for range examineAttempts {
		m, err := t.read(ctx, of)
		if err != nil || m == nil || m.DeletionTimestamp != nil {
			return done, err
		}
		// The states of the owners remain valid between attempts, except for owners that existed. So owners that are absent need
		// not be read again if only other parts of the object change.
		if owners == nil || !equalRefs(judged, m.OwnerReferences) || slices.Contains(owners, solid) {
			if owners, res, err = w.standings(ctx, t, m.OwnerReferences); err != nil {
				return done, err
			}
			judged = m.OwnerReferences
		}
		owns, err := w.owns(ctx, t, owners, judged)
		if err != nil {
			return done, err
		}
		v := judge(&m.ObjectMeta, owners, owns)
		switch v.act {
		case keep:
			return res, nil
		case trim:
			err = t.trim(ctx, of, m.OwnerReferences, v.refs)
		case remove:
			err = t.remove(ctx, of, m.ResourceVersion, v.policy)
		}
		switch {
		case err == nil:
			w.log.Debug("garbage collector: done", zap.String("resource", t.kind.String()), zap.String("object", t.where()),
				zap.Bool("deleted", v.act == remove), zap.String("policy", string(v.policy)))
			if v.act == remove {
				res = done
			}
			return res, nil
		case apierrors.IsNotFound(err):
			return done, nil
		case !errors.Is(err, errMoved) && !apierrors.IsConflict(err):
			return done, err
		}
	}
	return done, errMoved
}
