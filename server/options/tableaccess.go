package options

func authenticationFlags() []flag {
	return []flag{
		{name: "anonymous-auth", kind: "bool", help: "Requests without credentials are those of system:anonymous. With the mode AlwaysAllow they are so at the health paths only.", effect: func(o *Options) any { return &o.Authentication.Anonymous }},
		{name: "client-ca-file", kind: "string", help: "File of the authorities, in PEM, whose client certificates name users (CN) and their groups (O). It is used again when it changes.", effect: func(o *Options) any { return &o.Authentication.ClientCAFile }},
		{name: "token-auth-file", kind: "string", help: "CSV file of bearer tokens and their users: token,user,uid,\"group1,group2\". It is used again when it changes.", effect: func(o *Options) any { return &o.Authentication.TokenFile }},
		{name: "api-audiences", kind: "strings", help: "Names of this API in tokens. (default those of --service-account-issuer)", effect: func(o *Options) any { return &o.Authentication.Audiences }},
		{name: "authentication-config", kind: "string", help: "File that configures authenticators of JSON web tokens and of anonymous requests. It is used again when it changes.", effect: func(o *Options) any { return &o.Authentication.ConfigFile }},
		{name: "authentication-token-webhook-cache-ttl", kind: "duration", help: "How long answers of the token webhook are remembered.", effect: func(o *Options) any { return &o.Authentication.Webhook.CacheTTL }},
		{name: "authentication-token-webhook-config-file", kind: "string", help: "File of the token webhook, a kubeconfig. It is used again when it changes.", effect: func(o *Options) any { return &o.Authentication.Webhook.ConfigFile }},
		{name: "authentication-token-webhook-version", kind: "string", help: "Version of TokenReview that the token webhook is sent: v1beta1 or v1.", effect: func(o *Options) any { return &o.Authentication.Webhook.Version }},
		{name: "enable-bootstrap-token-auth", kind: "bool", help: "Bootstrap tokens in Secrets of kube-system are credentials.", effect: func(o *Options) any { return &o.Authentication.BootstrapTokens }},
		{name: "oidc-ca-file", kind: "string", help: "File of the authorities that the OpenID issuer's certificate is verified by.", effect: func(o *Options) any { return &o.Authentication.OIDC.CAFile }},
		{name: "oidc-client-id", kind: "string", help: "Client that OpenID tokens are issued for.", effect: func(o *Options) any { return &o.Authentication.OIDC.ClientID }},
		{name: "oidc-groups-claim", kind: "string", help: "Claim with the user's groups.", effect: func(o *Options) any { return &o.Authentication.OIDC.GroupsClaim }},
		{name: "oidc-groups-prefix", kind: "string", help: "What is put before the groups of OpenID tokens.", effect: func(o *Options) any { return &o.Authentication.OIDC.GroupsPrefix }},
		{name: "oidc-issuer-url", kind: "string", help: "URL of the OpenID issuer.", effect: func(o *Options) any { return &o.Authentication.OIDC.IssuerURL }},
		{name: "oidc-required-claim", kind: "mapStringString", help: "A claim that an OpenID token must have, as claim=value. For several claims the flag is repeated.", effect: func(o *Options) any { return &o.Authentication.OIDC.RequiredClaims }},
		{name: "oidc-signing-algs", kind: "strings", help: "Signature algorithms of OpenID tokens.", effect: func(o *Options) any { return &o.Authentication.OIDC.SigningAlgorithms }},
		{name: "oidc-username-claim", kind: "string", help: "Claim with the user's name.", effect: func(o *Options) any { return &o.Authentication.OIDC.UsernameClaim }},
		{name: "oidc-username-prefix", kind: "string", help: "What is put before the names of OpenID users: - for nothing. (default the issuer URL and #, except with the claim email)", effect: func(o *Options) any { return &o.Authentication.OIDC.UsernamePrefix }},
		{name: "requestheader-allowed-names", kind: "strings", help: "Common names of the proxies that may name users in headers. Without names all certificates of --requestheader-client-ca-file are those of proxies.", effect: func(o *Options) any { return &o.Authentication.Proxies.Names }},
		{name: "requestheader-client-ca-file", kind: "string", help: "File of the authorities, in PEM, of these proxies' certificates. It is used again when it changes.", effect: func(o *Options) any { return &o.Authentication.Proxies.CAFile }},
		{name: "requestheader-extra-headers-prefix", kind: "strings", help: "Prefixes of headers with extra attributes of the user, such as X-Remote-Extra-.", effect: func(o *Options) any { return &o.Authentication.Proxies.Extra }},
		{name: "requestheader-group-headers", kind: "strings", help: "Headers with the user's groups, such as X-Remote-Group.", effect: func(o *Options) any { return &o.Authentication.Proxies.Group }},
		{name: "requestheader-uid-headers", kind: "strings", help: "Headers with the user's UID, such as X-Remote-Uid.", effect: func(o *Options) any { return &o.Authentication.Proxies.UID }},
		{name: "requestheader-username-headers", kind: "strings", help: "Headers with the user's name, such as X-Remote-User.", effect: func(o *Options) any { return &o.Authentication.Proxies.User }},
		{name: "service-account-extend-token-expiration", kind: "bool", help: "Tokens for pods are valid for a year if an hour and seven seconds are requested, for clients that do not read a token again.", effect: func(o *Options) any { return &o.ServiceAccounts.Extend }},
		{name: "service-account-issuer", kind: "stringArray", help: "Issuer of tokens of service accounts. The first one is that of new tokens, and all are accepted. It is the default of --api-audiences. (default https://kubernetes.default.svc)", effect: func(o *Options) any { return &o.ServiceAccounts.Issuers }},
		{name: "service-account-jwks-uri", kind: "string", help: "URI of the issuer's keys in the OpenID discovery document. (default /openid/v1/jwks of the server)", effect: func(o *Options) any { return &o.ServiceAccounts.KeysURI }},
		{name: "service-account-key-file", kind: "stringArray", help: "File of keys in PEM that verify tokens of service accounts, beside that of --service-account-signing-key-file. It is used again when it changes.", effect: func(o *Options) any { return &o.ServiceAccounts.KeyFiles }},
		{name: "service-account-lookup", kind: "bool", help: "The token of a Secret ends with the Secret and the account.", effect: func(o *Options) any { return &o.ServiceAccounts.Lookup }},
		{name: "service-account-max-token-expiration", kind: "duration", help: "How long a token can be requested for, at least an hour.", effect: func(o *Options) any { return &o.ServiceAccounts.MaxExpiration }},
		{name: "service-account-signing-endpoint", kind: "string", help: "Socket of a signer of tokens.", refused: "external signers of tokens are not supported; use --service-account-signing-key-file"},
		{name: "service-account-signing-key-file", kind: "string", help: "File of private keys in PEM. The first one signs the tokens of service accounts, and all verify. It is used again when it changes. (default service-accounts.pem in --cert-dir, which is made)", effect: func(o *Options) any { return &o.ServiceAccounts.SigningKeyFile }},
	}
}

func authorizationFlags() []flag {
	return []flag{
		{name: "authorization-mode", kind: "strings", help: "Authorizers, in the order in which they are asked, after system:masters has been allowed everything. (default AlwaysAllow)", effect: func(o *Options) any { return &o.AuthorizationModes }},
		{name: "authorization-config", kind: "string", help: "File that configures the authorizers, in place of --authorization-mode and the flags of its webhook. It is used again when it changes.", effect: func(o *Options) any { return &o.Authorization.ConfigFile }},
		{name: "authorization-policy-file", kind: "string", help: "File of the policy of ABAC: a JSON object in each line.", effect: func(o *Options) any { return &o.Authorization.PolicyFile }},
		{name: "authorization-webhook-cache-authorized-ttl", kind: "duration", help: "How long the webhook's permissions are remembered.", effect: func(o *Options) any { return &o.Authorization.Webhook.AuthorizedTTL }},
		{name: "authorization-webhook-cache-unauthorized-ttl", kind: "duration", help: "How long the webhook's refusals are remembered.", effect: func(o *Options) any { return &o.Authorization.Webhook.UnauthorizedTTL }},
		{name: "authorization-webhook-config-file", kind: "string", help: "File of the webhook of the mode Webhook, a kubeconfig.", effect: func(o *Options) any { return &o.Authorization.Webhook.ConfigFile }},
		{name: "authorization-webhook-version", kind: "string", help: "Version of SubjectAccessReview that the webhook is sent: v1beta1 or v1.", effect: func(o *Options) any { return &o.Authorization.Webhook.Version }},
		{name: "explain-authorization", kind: "bool", help: "Reviews of the access of users have the binding, the role and the rule that allow a request, or those that nearly do, for users who may list roles and bindings. kube-apiserver has no such flag.", effect: func(o *Options) any { return &o.Authorization.Explain }},
	}
}

func admissionFlags() []flag {
	return []flag{
		{name: "enable-admission-plugins", kind: "strings", help: "Admission plug-ins to use beside those that kube-apiserver uses by default, of which the program has those that the end of this help names.", effect: func(o *Options) any { return &o.enable }},
		{name: "disable-admission-plugins", kind: "strings", help: "Admission plug-ins not to use.", effect: func(o *Options) any { return &o.disable }},
		{name: "admission-control", kind: "strings", help: "The admission plug-ins to use, in kube-apiserver's old form."},
		{name: "admission-control-config-file", kind: "string", help: "File that configures admission plug-ins."},
		{name: "default-not-ready-toleration-seconds", kind: "int", help: "How long pods tolerate nodes that are not ready."},
		{name: "default-unreachable-toleration-seconds", kind: "int", help: "How long pods tolerate nodes that cannot be reached."},
	}
}
