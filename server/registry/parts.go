package registry

// Parts is a Storage that is made of several values. It has the capabilities of all of them. If several values have the same
// capability, the first of them serves it.
type Parts []any

// As returns the capability T of the Storage of a resource or subresource, such as a Getter: the Storage itself, or the first of
// its Parts that implements T. ok is false if there is none.
func As[T any](storage any) (of T, ok bool) {
	if of, ok = storage.(T); ok {
		return of, true
	}
	parts, _ := storage.(Parts)
	for _, p := range parts {
		if of, ok = As[T](p); ok {
			return of, true
		}
	}
	return of, false
}
