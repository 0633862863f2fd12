package options

// section is flags that --help lists together.
type section struct {
	title string
	flags []flag
}

// flag is one flag. Flags of kube-apiserver have its names and types.
type flag struct {
	name, kind, help string
	// effect returns the field that the flag sets, whose value before is the flag's default; nil is a flag without effect yet.
	effect func(*Options) any
	// short is a one-letter name.
	short string
	// refused says why the flag cannot be given, where ignoring it would let requests pass that it is given to stop.
	refused string
}

// sections are all flags.
func sections() []section {
	return []section{
		{"Serving", servingFlags()},
		{"Storage", storageFlags()},
		{"Authentication", authenticationFlags()},
		{"Authorization", authorizationFlags()},
		{"Admission", admissionFlags()},
		{"Auditing", append(auditFlags(), auditWebhookFlags()...)},
		{"Limits and shutdown", limitFlags()},
		{"Kinds and compatibility", kindFlags()},
		{"Connections to other components", componentFlags()},
		{"Observation", observationFlags()},
		{"Other", otherFlags()},
	}
}

func otherFlags() []flag {
	return []flag{
		{name: "help", kind: "bool", short: "h", help: "Print this and end.", effect: func(o *Options) any { return &o.help }},
		{name: "version", kind: "version", help: "Print the version and end.", effect: func(o *Options) any { return &o.version }},
	}
}
