// Package jwt authenticates JSON Web Tokens of OpenID Connect issuers, as --authentication-config and the flags --oidc-* of kube-apiserver
// configure it: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-authentication-configuration.
//
//	func install(host *server.Host) error { // a server.ExtensionFunc
//		file := jwt.NewFile(func(a *jwt.Authenticator) error {
//			return host.Authenticate(authn.OIDC, authn.BearerToken(authn.ForAudiences(a, host.Audiences()...)))
//		}, jwt.Options{})
//		host.OnClose(file.Close)
//		return host.Follow(server.ConfigFile{Name: "authentication", Path: "authentication.yaml", Use: file.Use})
//	}
//
// The file has an entry for each issuer, such as
//
//	apiVersion: apiserver.config.k8s.io/v1
//	kind: AuthenticationConfiguration
//	jwt:
//	- issuer:
//	    url: https://accounts.example.com
//	    audiences: [my-api]
//	  claimMappings:
//	    username: {claim: sub, prefix: ""}
//
// A program with a fixed configuration needs no [File]: [Parse] reads a configuration, [OIDC] makes one of the flags, and [New] makes an
// [Authenticator] of it.
//
// # Which token
//
// The issuer that a token states finds the entry of the configuration; nothing else of the token is believed before its signature is
// verified with a key of that issuer. There is no opinion of a token of another issuer, and of what is no signed token. The
// algorithm must be RS, PS or ES with 256, 384 or 512 bits: never "none", nor an HMAC. A token needs an end (exp) and one of the
// audiences of the entry. It may come 5 minutes before its begin (nbf).
//
// # Which user
//
// Name, groups, uid and extra attributes are made of claims, or by expressions in CEL ([Mappings]). Rules about claims and about the user
// can refuse it. If the token has an id (jti), the user has the attribute authentication.kubernetes.io/credential-id. If groups are made of
// a claim, and the token says that the claim is elsewhere (distributed claims), it is fetched there; the endpoint answers with a token
// of an issuer that has a discovery document, for the same audiences. An issuer that is trusted to name users can so make the server
// send requests to any https address that it reaches.
//
// # Keys
//
// Each issuer has a goroutine, which is the only one that asks it for keys: at the beginning, again every 10 s until keys are known, and
// when a token is signed with an unknown one. Until keys are known, tokens of the issuer are refused at once. Afterwards only
// tokens that no known key verifies wait, together, for the next fetch; see package internal/provider. If too many wait, others are refused. A token that was signed with a new
// key is therefore accepted as soon as the issuer publishes the key.
//
// The issuers of distributed claims of an entry are found when their claims come, and have places. If no place is free, a new issuer gets
// that of one which has no keys, or which was not used for an hour: of those, the one that was unused longest. Otherwise the
// claims of the new issuer are refused.
//
// An issuer that does not answer leaves the server ready: other users are not affected.
//
// # Bounds
//
// All bounds can be changed ([Limits]), apart from those with a name of their own.
//
//	bytes of a file                           3 MiB   MaxFile
//	issuers                                      64   MaxIssuers
//	bytes of a token                         64 KiB   Limits.Token
//	bytes of discovery document, and of keys  1 MiB   Limits.Document
//	keys of an issuer                           100   Limits.Keys
//	bits of an RSA key                         8192   Limits.Modulus
//	bytes of an answer with claims           64 KiB   Limits.Claims
//	issuers of claims of an entry                 8   Limits.Sources
//	tokens of an issuer that wait              1000   Limits.Waiting
//	time of a request to an issuer             30 s   Limits.Timeout
//	connections to a host of an entry            16   Limits.Conns
//	redirects, only to https                     10   Limits.Redirects
//	fetches of keys for unknown ones    1 each second   Limits.Pause
//	cost of one expression, and of all    1 and 10 million   cel.MaxCallCost, cel.MaxObjectCost
//	time until a changed file has keys        1 min   File
//
// # Differences from kube-apiserver
//
//   - Names of claims are compared exactly (RFC 7519, section 10.1.1), and a claim that stands twice in a token makes it invalid
//     (section 4). kube-apiserver takes "EXP" for "exp", and the last of two claims. Two readers of such a token can understand
//     it differently.
//   - A user without a name is refused. There an empty claim without a prefix makes one.
//   - Numbers that a float64 cannot hold, and times that do not come, make a token invalid.
//   - A header with crit or b64 makes a token invalid, whatever their values are.
//   - All URLs are https, those of redirects, keys and distributed claims too.
//   - Keys are fetched together with discovery, so that an issuer without keys is not initialized; a changed file that names such an issuer
//     is not used. They are also fetched every hour, so that a key which the issuer withdraws is not accepted for ever.
//   - The first distributed claims of an issuer wait for its keys. There they are refused.
//   - A larger token than Limits.Token is refused.
//   - A YAML file with several documents is refused. There the first is used.
package jwt
