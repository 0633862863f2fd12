package runtime

// TagDefaults reports whether the kind has no [KindOptions].Default. If the kind also has no Schema, SetDefaults sets only the
// defaults of struct tags, and a caller can find out from an object's JSON that SetDefaults would change nothing.
func (k *Kind) TagDefaults() bool { return k.setDefaults == nil }
