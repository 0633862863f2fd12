package registry

// Scale says where a kind stores the values of autoscaling/v1 Scale. Paths are dotted JSON paths with a leading dot
// (".spec.replicas"), as in CustomResourceDefinitions.
type Scale struct {
	SpecReplicas   string // path of the desired replicas, an integer; required
	StatusReplicas string // path of the actual replicas, an integer; required
	LabelSelector  string // path of a string with a label selector; optional
}
