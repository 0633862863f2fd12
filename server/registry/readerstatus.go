package registry

// ReaderStatus makes the StatusError of a storage error that a reader of the objects meets: about the object called name,
// or with "" about all of them.
func (r *Registry) ReaderStatus(err error, name string) error {
	if name == "" {
		return r.listStatus(err, false)
	}
	return r.readStatus(err, name)
}
