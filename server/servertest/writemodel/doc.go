// Package writemodel holds the writes of a server against a model of them, with random requests.
//
// The model applies what a request says with the libraries that kube-apiserver is made of and nothing of this project:
// field managers of k8s.io/apimachinery, its strategic merge patch, the JSON patches of gopkg.in/evanphx/json-patch.v4.
// [Run] sends create, update, every kind of patch and apply to an object and its status, for several managers, and
// compares answer, stored object and metadata.managedFields after each. It is for tests.
//
// What is not in the model: validation (the requests are valid but for what makes a patch or an apply fail), admission
// and conversion.
package writemodel
