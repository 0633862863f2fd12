package main

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
)

// floor serves the prepared bytes.
type floor struct {
	*prepared
	feed       *feed
	credential string // the required header Authorization; "" means that all requests are refused
}

// ServeHTTP implements http.Handler.
func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		_, _ = w.Write([]byte("ok")) // ignore the error, here and below: the client has gone
		return
	}
	if f.credential == "" || r.Header.Get("Authorization") != f.credential {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	w.Header()["Content-Type"] = []string{"application/json"}
	if i, ok := f.byPath[r.URL.Path]; ok {
		f.item(w, r, i)
		return
	}
	if r.URL.Path != collection+"/"+widget.Resource || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	switch query := r.URL.Query(); {
	case r.URL.RawQuery == "":
		f.all(w, r)
	case query.Get("watch") != "" && query.Get("watch") != "0" && query.Get("watch") != "false":
		f.watch(w, r)
	case query.Has("labelSelector"):
		f.group(w, r, query.Get("labelSelector"))
	case query.Has("limit"):
		f.part(w, query.Get("continue"), query.Get("limit"))
	default:
		f.all(w, r)
	}
}

// item answers a GET or a write.
func (f *floor) item(w http.ResponseWriter, r *http.Request, i int) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPut, http.MethodPatch:
		f.feed.tell(i)
	default:
		http.Error(w, "only GET, PUT and PATCH", http.StatusMethodNotAllowed)
		return
	}
	rest := f.rest(i)
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(itemHead) + len(rest) + 1)}
	_, _ = w.Write([]byte(itemHead))
	_, _ = w.Write(rest)
	_, _ = w.Write([]byte{'\n'})
}

// all answers a LIST of all widgets, compressed if the client accepts that.
func (f *floor) all(w http.ResponseWriter, r *http.Request) {
	body := f.list
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header()["Content-Encoding"] = []string{"gzip"}
		body = f.gzip
	}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	_, _ = w.Write(body)
}

// part answers a LIST of a page.
func (f *floor) part(w http.ResponseWriter, next, limit string) {
	from, err := strconv.Atoi(next)
	if next != "" && err != nil || from < 0 {
		http.Error(w, "continue is not from here", http.StatusBadRequest)
		return
	}
	most, err := strconv.Atoi(limit)
	if err != nil || most < 1 {
		http.Error(w, "limit is no number above 0", http.StatusBadRequest)
		return
	}
	head, items := f.page(from, most)
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(head) + len(items) + len(listTail))}
	_, _ = w.Write(head)
	_, _ = w.Write(items)
	_, _ = w.Write([]byte(listTail))
}

// group answers a LIST of a value of the label "group".
func (f *floor) group(w http.ResponseWriter, r *http.Request, selector string) {
	name, ok := strings.CutPrefix(selector, "group=")
	list := f.groups[name]
	if !ok || list == nil {
		http.NotFound(w, r)
		return
	}
	body := list()
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	_, _ = w.Write(body)
}

// watch sends an event for every write from now on. Events that are available together are flushed together.
func (f *floor) watch(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	at := f.feed.now()
	w.WriteHeader(http.StatusOK)
	for control.Flush() == nil {
		written, err := f.feed.next(r.Context(), at)
		if err != nil {
			return
		}
		at += len(written)
		for _, i := range written {
			_, _ = w.Write([]byte(eventHead))
			_, _ = w.Write(f.rest(i))
			_, _ = w.Write([]byte(eventTail))
		}
	}
}
