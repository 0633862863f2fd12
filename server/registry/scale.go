package registry

// Scale says where a kind keeps what autoscaling/v1 Scale shows. Paths are dotted JSON paths with a leading dot
// (".spec.replicas"), as in CustomResourceDefinitions.
type Scale struct {
	SpecReplicas   string // required; an integer
	StatusReplicas string // required; an integer
	LabelSelector  string // optional; a string, a label selector in its text form
}
