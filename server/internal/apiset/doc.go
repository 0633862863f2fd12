// Package apiset is what a server serves: kinds in their versions, with their registries, caches and handlers, what discovery,
// OpenAPI and metrics say of them, and the Readers of their objects. It changes while requests are served.
//
// # A change
//
// [Set.Exchange] takes resources out and adds others, in one step: all of it or nothing. Without a [Change] requests see that at
// once. With one, which an extension has while it is installed, all that is exchanged is prepared, and seen by that extension
// alone, until [Set.Publish] shows it in one step or [Set.Abandon] takes it back.
//
// An Install of the server is
//
//	Begin      a Change; what the extension serves or withdraws is made, and prepared in it (exchange.go)
//	Publish    under the mutex: the Readers' sources change, then the policy, then the routes, each of which serves only
//	           requests that are decided by a policy with this Install (publish.go)
//	retire     caches of what is gone are closed when the last request to it has ended (requests.go)
//
// or, with an error, Begin and Abandon.
//
// One mutex, that of the Set, guards what is served; requests do not take it, but for the last one of a kind that was replaced. Floors, from the top: exchange and publish, which
// change the Set; delegate, which keeps the handlers of delegated group versions; build, which makes what is added; stores, which opens registries, and
// describe, which registers kinds; published, which tells of what is served; readers; and resource, which says what a kind is.
// Beside them: change, how far a Change is; forget, what is to be forgotten of what is gone; versions, verbs and kinds, what is checked
// of a kind; caches and stored, what of a kind is in memory and in the storage; migrate, which rewrites that.
//
// [Kinds], which nothing serves, are of describe and stores alone: there is no Set behind them.
package apiset
