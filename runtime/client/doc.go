// Package client talks to other servers of the Kubernetes API: it delegates decisions to them, calls webhooks that are
// configured by a kubeconfig, and reads the objects of another server as if they were one's own. It does not use client-go.
//
//	cfg, err := client.Kubeconfig("/etc/keelson/delegate.kubeconfig", "")
//	c, err := client.New(cfg, client.Options{})
//	defer c.Close()
//
// # Configuration
//
// A [Config] says where a server is, whom to trust and who the client is. [Kubeconfig] reads it from a file, [InCluster] from
// the environment of a pod, and a program may fill it in. Tokens and client certificates in files are read again when they
// change: a token after a minute at the latest, and at once after a 401; a certificate for a new connection. Plug-ins of
// kubeconfigs (exec, auth-provider) are refused with an error, and never ignored. Errors name the file and the field and say
// what to do; neither errors nor Config.String contain secrets.
//
// # Requests
//
// A [Client] owns the connections to one server. [Client.Do] sends any request; one without a path goes to the configured URL
// itself, as webhooks want it:
//
//	answer, err := c.Do(ctx, client.Request{Method: http.MethodPost, Body: review})
//
// Get, List, Create, Update and Delete are for the objects of a [Target], and read the answer into a Go struct, an
// unstructured.Unstructured or a json.RawMessage. [Client.Watch] returns a stream of events. [Client.Resource] finds the
// resource of a kind by discovery.
//
// Each request has a timeout, and each answer and each event of a watch a bound. Answers with the code 429 or 503 and a
// Retry-After are asked for again, a bounded number of times and as long as the timeout allows. Redirects are followed within
// the server only.
//
// # Errors
//
//   - StatusErrors of apimachinery, where the answer was no: what the Status in its body says, or what its code means, in the
//     words that client-go has.
//   - *url.Error, where there was no answer or it could not be read. It wraps [ErrTooLong], [ErrClosed] or the context's error
//     where that is the reason.
//
// # Readers
//
// [Readers] implement runtime.Readers over another server:
//
//	readers := client.NewReaders(c, client.ReadersOptions{Scheme: scheme})
//	defer readers.Close()
//	airport, err := runtime.Read[*Airport](readers).Get(ctx, "", "muc", runtime.Freshness{})
//
// The first call of a method of a Reader begins to list and watch its kind, in one goroutine, and waits for the objects, which
// are decoded once. After that:
//
//   - Cached reads are answered from memory. While the server is away or the objects are listed again, the answers are those
//     from before. Ready returns an [*OutageError] if that lasts longer than ReadersOptions.Stale: the objects may be out of date,
//     but they are there. A caller that must not decide by old objects calls Ready.
//   - AtLeast waits for the watch, at most ReadersOptions.Wait. Since a watch of a kind that does not change says nothing for
//     about a minute, a read that waits has the server listed again in the meantime: it costs a list.
//   - Exactly is answered from a bounded log of changes. States from before the last list are Expired.
//   - Live asks the server. The objects it returns are not those that are kept.
//   - Changes has a bounded log too, which is kept when the objects are listed again, so that no deletion is lost.
//   - Changed may be later than the newest change, and may grow without one, since a list tells what has changed, and not
//     when. After the first list Changed is the revision of that list, after a later list that has found changes the revision of
//     that one, and after objects that were dropped are loaded anew it grows even if they are the same. An index that is checked
//     against Changed is then made again for nothing. It never misses a change that the Reader knows.
//   - Field selectors beyond metadata.name and metadata.namespace are asked of the server, whatever the freshness; at an exact
//     revision they are refused.
//
// A server that comes back with lower revisions, since its storage was replaced, is followed: revisions go back then, and
// Changes since a revision of before begins again with Reset. A kind that is not served any more, and one that is larger than
// ReadersOptions.MaxObjects or MaxBytes, is dropped: its reads fail with runtime.ErrNotReady until that changes. So do reads
// before the first objects once something has failed.
//
// The permissions that a Reader needs are list and watch of the resource in all namespaces, get for Live, and discovery of the
// group version.
package client
