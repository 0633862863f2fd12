package client

// InClusterFrom is InCluster with another environment and folder.
func InClusterFrom(getenv func(string) string, dir string) (Config, error) {
	return inCluster(getenv, dir)
}
