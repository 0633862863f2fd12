package runtime

// TagDefaults reports whether SetDefaults sets no defaults but those of struct tags, if any: then it can be told from an
// object's JSON that it would change nothing.
func (k *Kind) TagDefaults() bool { return k.setDefaults == nil }
