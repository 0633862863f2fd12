// Package writemodel tests the writes of a server: it sends random requests, and compares the results with those of a model.
//
// The model computes the result of a request with the libraries of kube-apiserver, and with no code of this project: field
// managers of k8s.io/apimachinery, its strategic merge patch, and the JSON patches of gopkg.in/evanphx/json-patch.v4. [Run] sends
// create, update, every kind of patch and apply to an object and its status, for several managers. After each request it compares
// the answer, the stored object and metadata.managedFields.
//
// The model has no validation (the requests are valid except for what makes a patch or an apply fail), no admission and no
// conversion.
package writemodel
