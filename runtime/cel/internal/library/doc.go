// Package library implements the functions and types that Kubernetes adds to those of cel-go and its extensions, and defines the
// costs of all functions.
//
// Each library is a function that returns an option of a cel-go environment; package cel chooses the libraries by version.
// [Costs] has the cost of a call, measured and estimated. The numbers are those of kube-apiserver, because they decide which
// expressions may be stored.
//
// Some behavior is odd but kept, because expressions depend on it. A quantity that add or sub returned equals other quantities if
// it is the left operand; as the right operand it is an error. Authorizers and their checks cannot be compared. sign is called as
// sign(quantity), the other functions of quantities are methods. The size of a network is the length of its prefix in bytes. In
// url, a missing path is an empty path.
//
// https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-cel-libraries
package library
