package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
)

// These are the verbs of write scenarios, in order: delete removes what create has created.
const (
	create1 = "create"
	update  = "update" // PUT of the whole object from the last answer, with another size
	patch   = "patch"  // merge patch of the size
	apply   = "apply"  // server-side apply of the size
	remove  = "delete"
)

// WriteName returns the name of the scenario of a verb and a number of clients, 1 or 16.
func WriteName(verb string, clients int) string { return fmt.Sprintf("write/%s/%d", verb, clients) }

// Verbs returns the verbs for WriteName.
func Verbs() []string { return []string{create1, update, patch, apply, remove} }

// Mixed is the name of the scenario with many kinds of requests at once.
const Mixed = "mixed"

// handful is the number of objects that changes use in turn: enough that clients do not conflict, and few enough that each server
// changes each object several times.
const handful = 64

// object is a widget that a load has created.
type object struct {
	number int
	last   []byte // the last answer of the server
}

func (o *object) path() string { return item(o.number) }

// resized returns the object in the last answer with another size.
func (o *object) resized(size int) ([]byte, error) {
	i := bytes.Index(o.last, []byte(sizeMember))
	if i < 0 {
		return nil, fmt.Errorf("no %s in %.300q", sizeMember, o.last)
	}
	body := slices.Clone(o.last)
	copy(body[i+len(sizeMember):], fmt.Sprint(size))
	return body, nil
}

// sizeMember precedes the six digits of a widget's size.
const sizeMember = `"size":`

// sizeOf returns a size that differs from the object's last one. It always has six digits, so the length of answers is constant.
func sizeOf(worker, n int) int { return 100_000 + (worker*50_000+n*17)%900_000 }

// writes measures writes with one client and with many.
func (s *session) writes(ctx context.Context) error {
	for _, n := range []int{1, 16} {
		if err := s.writesOf(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) writesOf(ctx context.Context, n int) (err error) {
	wanted := slices.ContainsFunc(Verbs(), func(verb string) bool { return s.plan.wants(WriteName(verb, n)) })
	if !wanted {
		return nil
	}
	clients := s.target.DialAll(n)
	defer load.CloseAll(clients)
	limit := load.Limit{For: s.plan.Write, Least: fewest}

	var made made
	defer func() { err = errors.Join(err, s.removeAll(ctx, made.objects)) }()
	creates := limit
	creates.Most = s.plan.Creates
	create := func(ctx context.Context, c *load.Client, _, _ int) error { return s.make(ctx, c, &made) }
	if err := s.loop(ctx, WriteName(create1, n), clients, creates, create); err != nil {
		return err
	}
	if missing := handful - len(made.objects); missing > 0 {
		if _, err := load.Loop(ctx, clients, load.Limit{Least: missing, Most: missing}, create); err != nil {
			return err
		}
	}
	for _, verb := range []struct {
		name  string
		write func(ctx context.Context, c *load.Client, o *object, size int) error
	}{{update, put}, {patch, mergePatch}, {apply, applyPatch}} {
		op := func(ctx context.Context, c *load.Client, worker, i int) error {
			mine := handful / n
			return verb.write(ctx, c, made.objects[worker*mine+i%mine], sizeOf(worker, i))
		}
		// The warm-up of the loop may not reach each object, and the first apply of an object differs from the others.
		if s.plan.wants(WriteName(verb.name, n)) {
			once := load.Limit{Least: handful, Most: handful}
			if _, err := load.Loop(ctx, clients, once, op); err != nil {
				return err
			}
		}
		if err := s.loop(ctx, WriteName(verb.name, n), clients, limit, op); err != nil {
			return err
		}
	}
	return s.deletes(ctx, n, clients, &made)
}

// made has the objects that a load has created.
type made struct {
	mu      sync.Mutex
	objects []*object // guarded by mu while clients run
}

// make creates a widget.
func (s *session) make(ctx context.Context, c *load.Client, m *made) error {
	m.mu.Lock()
	s.created++
	o := &object{number: firstCreated + s.created}
	m.mu.Unlock()
	answer, err := create(ctx, c, o.number)
	if err != nil {
		return err
	}
	o.last = slices.Clone(answer)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects = append(m.objects, o)
	return nil
}

// firstCreated is greater than the numbers of all widgets that servers are filled with.
const firstCreated = 1_000_000

func put(ctx context.Context, c *load.Client, o *object, size int) error {
	body, err := o.resized(size)
	if err != nil {
		return err
	}
	answer, err := c.Do(ctx, load.Request{Method: http.MethodPut, Path: o.path() + manager, Body: body, Keep: load.KeepAll})
	if err != nil {
		return err
	}
	o.last = append(o.last[:0], answer.Head...)
	return nil
}

func mergePatch(ctx context.Context, c *load.Client, o *object, size int) error {
	_, err := c.Do(ctx, load.Request{
		Method: http.MethodPatch, Path: o.path() + manager, ContentType: "application/merge-patch+json",
		Body: fmt.Appendf(nil, `{"spec":{"size":%d}}`, size),
	})
	return err
}

func applyPatch(ctx context.Context, c *load.Client, o *object, size int) error {
	_, err := c.Do(ctx, load.Request{
		Method: http.MethodPatch, Path: o.path() + "?fieldManager=applier&force=true", ContentType: "application/apply-patch+yaml",
		Body: fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"%s","metadata":{"name":"%s"},"spec":{"size":%d,"color":"green"}}`,
			widget.Group, widget.Version, widget.Kind, widget.Name(o.number), size),
	})
	return err
}

func deleteOne(ctx context.Context, c *load.Client, o *object) error {
	_, err := c.Do(ctx, load.Request{Method: http.MethodDelete, Path: o.path()})
	return err
}

// deletes measures the deletion of the created objects.
func (s *session) deletes(ctx context.Context, n int, clients []*load.Client, m *made) error {
	scenario := WriteName(remove, n)
	if !s.plan.wants(scenario) {
		return nil
	}
	return s.measure(ctx, scenario, func(ctx context.Context) (work, error) {
		r, err := load.Loop(ctx, clients, load.Limit{For: s.plan.Write, Least: fewest, Most: len(m.objects)}, m.remove)
		return worked(r), err
	})
}

// remove deletes one of the created objects.
func (m *made) remove(ctx context.Context, c *load.Client, _, _ int) error {
	m.mu.Lock()
	o := m.objects[len(m.objects)-1]
	m.objects = m.objects[:len(m.objects)-1]
	m.mu.Unlock()
	return deleteOne(ctx, c, o)
}

// removeAll deletes the remaining objects, so that the next load finds the same collection as this one.
func (s *session) removeAll(ctx context.Context, objects []*object) error {
	if len(objects) == 0 || ctx.Err() != nil {
		return nil
	}
	clients := s.target.DialAll(16)
	defer load.CloseAll(clients)
	left := made{objects: objects}
	_, err := load.Loop(ctx, clients, load.Limit{Least: len(objects), Most: len(objects)}, left.remove)
	return err
}

// mixed measures many clients with different requests while a few watch. Of 20 requests 12 are GET, 2 LIST of 1%, 3 merge
// patches, 1 an update, 1 a create and 1 the delete of the created object.
func (s *session) mixed(ctx context.Context) (err error) {
	const clients, watchers = 16, 10
	crowd, err := s.watch(ctx, load.Watching{Watchers: watchers})
	if err != nil {
		return err
	}
	defer crowd.Close()
	all := s.target.DialAll(clients)
	defer load.CloseAll(all)
	var made made
	defer func() { err = errors.Join(err, s.removeAll(ctx, made.objects)) }()
	create := func(ctx context.Context, c *load.Client, _, _ int) error { return s.make(ctx, c, &made) }
	if _, err := load.Loop(ctx, all, load.Limit{Least: handful, Most: handful}, create); err != nil {
		return err
	}
	mine := make([][]*object, clients) // by worker; other workers must not change the objects of its updates
	for i, o := range made.objects {
		mine[i%clients] = append(mine[i%clients], o)
	}
	return s.loop(ctx, Mixed, all, load.Limit{For: s.plan.Mixed, Least: clients}, func(ctx context.Context, c *load.Client, worker, n int) error {
		own := mine[worker]
		switch n % 20 {
		case 3, 13:
			_, err := c.Do(ctx, load.Request{Path: labelled()})
			return err
		case 5, 10, 15:
			return mergePatch(ctx, c, own[1+n%(len(own)-1)], sizeOf(worker, n))
		case 7:
			return put(ctx, c, own[0], sizeOf(worker, n))
		case 16:
			return s.make(ctx, c, &made)
		case 18:
			return made.remove(ctx, c, worker, n)
		}
		_, err := c.Do(ctx, load.Request{Path: item(s.some(worker, n))})
		return err
	})
}
