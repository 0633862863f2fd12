// Package website is an example of an operator written with controller-runtime, with a test suite that uses the Environment of
// package clienttest. It has two kinds and a controller that creates a Deployment, a Service, a ConfigMap and a [Domain] for a
// [Website]. Only TestMain, and one line for each manager, depend on the server that is used.
package website
