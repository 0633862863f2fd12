package jwt

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// File authenticates by the configuration in a file, and by another one when the file has changed. Make one with NewFile, and Close it.
// All methods may be called concurrently, but Use not twice at the same time.
type File struct {
	publish func(*Authenticator) error
	o       Options
	ready   time.Duration // a changed file has until the keys of its issuers are known
	grace   time.Duration // an authenticator that was replaced still gets keys, for the requests that use it
	ended   context.Context
	end     context.CancelFunc
	retired sync.WaitGroup // goroutines that close authenticators

	mu      sync.Mutex // guards the fields below
	conf    *Configuration
	current *Authenticator
}

// NewFile returns a File, which has no configuration before Use. It calls publish with each Authenticator, which from then on is the one
// to use, instead of the one before. publish must have changed nothing if it fails.
func NewFile(publish func(*Authenticator) error, o Options) *File {
	f := &File{publish: publish, o: o, ready: time.Minute, grace: time.Minute}
	f.ended, f.end = context.WithCancel(context.Background())
	return f
}

// Use uses the content of the file. It does not wait for issuers the first time. Later it waits for the keys of all issuers, and fails
// if they are not known after a minute. anonymous must stay as it was the first time. After an error nothing has changed.
func (f *File) Use(content []byte) error {
	conf, err := Parse(content)
	if err != nil {
		return err
	}
	before := f.configuration()
	if before != nil && !equality.Semantic.DeepEqual(before.Anonymous, conf.Anonymous) {
		return field.Forbidden(field.NewPath("anonymous"), "changed from initial configuration file")
	}
	next, err := New(conf, f.o)
	if err != nil {
		return err
	}
	if err := f.replace(next, conf, before == nil); err != nil {
		next.Close()
		return err
	}
	return nil
}

// replace makes an authenticator the current one.
func (f *File) replace(next *Authenticator, conf *Configuration, first bool) error {
	if !first {
		ctx, cancel := context.WithTimeout(f.ended, f.ready)
		defer cancel()
		if err := next.Wait(ctx); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended.Err() != nil {
		return errors.New("oidc: the file is closed")
	}
	if err := f.publish(next); err != nil {
		return err
	}
	if f.current != nil {
		f.retire(f.current)
	}
	f.current, f.conf = next, conf
	return nil
}

// retire closes an authenticator when no request uses it anymore.
func (f *File) retire(a *Authenticator) {
	f.retired.Go(func() {
		ctx, cancel := context.WithTimeout(f.ended, f.grace)
		defer cancel()
		<-ctx.Done()
		a.Close()
	})
}

func (f *File) configuration() *Configuration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conf
}

// Anonymous returns which requests without credentials the file accepts: nil if it does not say it.
func (f *File) Anonymous() *AnonymousRequests {
	return cmp.Or(f.configuration(), &Configuration{}).Anonymous
}

// Paths returns the arguments of authn.Anonymous for a: the paths of its conditions. ok is false if no request is accepted.
func Paths(a *AnonymousRequests) (paths []string, ok bool) {
	if a == nil || !a.Enabled {
		return nil, false
	}
	for _, c := range a.Conditions {
		paths = append(paths, c.Path)
	}
	return paths, true
}

// Close closes the authenticators, as Authenticator.Close does.
func (f *File) Close() {
	f.end()
	f.mu.Lock()
	current := f.current
	f.mu.Unlock()
	if current != nil {
		current.Close()
	}
	f.retired.Wait()
}
