// Package library has the functions and types that Kubernetes adds to those of cel-go and its extensions, and what all
// functions cost.
//
// Each library is a function that makes an option of a cel-go environment; package cel chooses them by version. Costs says
// what a call costs, measured and estimated; the numbers are those of kube-apiserver, since they decide which expressions may
// be stored.
//
// Some habits are odd but kept, because expressions see them: a quantity that is the result of add or sub is equal to others
// when it stands on the left, and an error on the right; authorizers and their checks cannot be compared; sign is called
// as sign(quantity), the other functions of quantities as methods; the size of a network is that of its prefix, in bytes; a
// path that is missing counts as empty in url.
//
// https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-cel-libraries
package library
