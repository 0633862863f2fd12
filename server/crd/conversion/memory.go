package conversion

import (
	"container/list"
	"sync"
	"time"
)

// memoryKey identifies one object in the version that is wanted from one webhook.
type memoryKey struct {
	webhook uint64
	item    itemKey
}

// memory stores the latest answers of all webhooks, in JSON. The stored bytes are never changed.
type memory struct {
	max int
	age time.Duration

	mu     sync.Mutex // guards all fields below
	closed bool
	bytes  int
	byKey  map[memoryKey]*list.Element
	order  list.List   // of *memorized, the newest first
	timer  *time.Timer // nil if there are no answers; drops old answers
}

type memorized struct {
	key   memoryKey
	json  []byte
	until time.Time
}

// memorizedBytes is about how many bytes an answer takes in addition to its JSON.
const memorizedBytes = 300

func (m *memorized) size() int { return len(m.json) + memorizedBytes }

func newMemory(bytes int, age time.Duration) *memory {
	return &memory{max: bytes, age: age, byKey: map[memoryKey]*list.Element{}}
}

// get returns an answer, or nil.
func (m *memory) get(k memoryKey) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byKey[k]
	if !ok || !time.Now().Before(memorizedIn(e).until) {
		return nil
	}
	return memorizedIn(e).json
}

// put stores an answer, unless it is longer than an eighth of the maximum.
func (m *memory) put(k memoryKey, json []byte) {
	entry := &memorized{key: k, json: json, until: time.Now().Add(m.age)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || entry.size() > m.max/8 {
		return
	}
	if e, ok := m.byKey[k]; ok {
		m.drop(e)
	}
	m.byKey[k] = m.order.PushFront(entry)
	m.bytes += entry.size()
	for m.bytes > m.max {
		m.drop(m.order.Back())
	}
	if m.timer == nil {
		m.timer = time.AfterFunc(m.age, m.dropOld)
	}
}

// forget drops the answers of a webhook.
func (m *memory) forget(webhook uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := m.order.Front(); e != nil; {
		next := e.Next()
		if memorizedIn(e).key.webhook == webhook {
			m.drop(e)
		}
		e = next
	}
}

// dropOld drops the answers that are too old, and sets the timer for the next one.
func (m *memory) dropOld() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for e := m.order.Back(); e != nil; e = m.order.Back() {
		if wait := memorizedIn(e).until.Sub(now); wait > 0 {
			m.timer.Reset(wait)
			return
		}
		m.drop(e)
	}
	m.timer = nil
}

// drop drops one answer. The caller holds mu.
func (m *memory) drop(e *list.Element) {
	m.order.Remove(e)
	delete(m.byKey, memorizedIn(e).key)
	m.bytes -= memorizedIn(e).size()
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.timer != nil {
		m.timer.Stop()
	}
	m.order.Init()
	clear(m.byKey)
	m.bytes = 0
}

func memorizedIn(e *list.Element) *memorized {
	m, _ := e.Value.(*memorized)
	return m
}
