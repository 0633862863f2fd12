// Package apiset implements the set of kinds that a server serves: the kinds in their versions with their registries, caches and
// handlers, their descriptions in discovery, OpenAPI and metrics, and the Readers of their objects. The set changes while
// requests are served.
//
// # Changes
//
// [Set.Exchange] removes resources and adds others, in one step: it does all of this or nothing. Without a [Change] requests see
// the result at once. An extension has a Change while it is installed. With it everything is prepared, and seen only by that
// extension, until [Set.Publish] shows it to requests in one step, or [Set.Abandon] drops it.
//
// An Install of the server has these steps:
//
//	Begin      makes a Change; the resources that the extension adds or withdraws are prepared in it (exchange.go)
//	Publish    under the mutex: the sources of the Readers change, then the policy, then the routes, each of which serves only
//	           requests that are decided by a policy with this Install (publish.go)
//	retire     closes the caches of removed resources after the last request to them has ended (requests.go)
//
// If the extension's Install returns an error, the steps are Begin and Abandon.
//
// One mutex, that of the Set, guards the served resources. Requests do not lock it, except for the last request to a kind that
// was replaced.
//
// # Files
//
// Each of these files may use the ones after it:
//
//   - exchange and publish change the Set;
//   - delegate has the handlers of delegated group versions;
//   - build makes the parts of added resources;
//   - stores opens registries, and describe registers kinds;
//   - published describes the served resources;
//   - readers has the Readers;
//   - resource has the types that describe kinds.
//
// Beside them: change has the state of a Change; forget removes the parts of removed resources; versions, verbs and kinds check
// kinds; caches and stored have the caches and storages of kinds; migrate stores objects anew.
//
// [Kinds] are kinds without a server. They use only describe and stores, and no Set.
package apiset
