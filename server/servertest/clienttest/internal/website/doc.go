// Package website is an operator as people write them with controller-runtime, and the suite that tests it against
// the Environment of package clienttest: two kinds, and a controller that makes of a [Website] a Deployment, a Service, a
// ConfigMap and a [Domain]. Nothing in it but the suite's TestMain and one line per manager knows what serves the API.
package website
