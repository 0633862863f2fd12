package registry

// ReaderStatus returns the StatusError for a storage error of a reader of the objects. name is the name of the object, or "" for
// an error about all objects.
func (r *Registry) ReaderStatus(err error, name string) error {
	if name == "" {
		return r.listStatus(err, false)
	}
	return r.readStatus(err, name)
}
