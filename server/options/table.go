package options

// section has flags that --help lists together.
type section struct {
	title string
	flags []flag
}

// flag is one flag. A flag of kube-apiserver has the same name and type.
type flag struct {
	name, kind, help string
	// effect returns a pointer to the field that the flag sets; the value of the field is the default. It is nil for a flag
	// without effect.
	effect func(*Options) any
	// partly is true if the flag has the effect that its help names, and lacks those that it has in kube-apiserver.
	partly bool
	// short is a one-letter name.
	short string
	// refused is the reason why the flag must not be given. It is for flags that restrict requests: ignoring one would let these
	// requests pass.
	refused string
}

// sections returns all flags.
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
