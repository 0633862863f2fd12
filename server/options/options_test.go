package options_test

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server/options"
)

var program = options.Program{
	Name: "plane", Version: "v1.2.3",
	AuthorizationModes: []string{"AlwaysAllow", "AlwaysDeny", "RBAC", "ABAC", "Webhook"},
	AdmissionPlugins:   []string{"AlwaysDeny", "NamespaceLifecycle", "NamespaceExists"},
}

// parse calls Parse with a storage.
func parse(args ...string) (*options.Options, error) {
	return options.Parse(program, append([]string{"--storage-file=objects.db"}, args...))
}

func TestDefaults(t *testing.T) {
	got, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	want := &options.Options{
		SecurePort: 6443, BindAddress: got.BindAddress, CertDir: "/var/run/kubernetes", EtcdPrefix: "/registry",
		AuthorizationModes: []string{"AlwaysAllow"}, AdmissionPlugins: []string{"NamespaceLifecycle"}, StorageFile: "objects.db",
		Authentication: options.Authentication{
			Anonymous: true, Webhook: options.TokenWebhook{Version: "v1beta1", CacheTTL: 2 * time.Minute},
			OIDC: options.OIDC{UsernameClaim: "sub", SigningAlgorithms: []string{"RS256"}},
		},
		Authorization:   options.Authorization{Webhook: options.AccessWebhook{Version: "v1beta1", AuthorizedTTL: 5 * time.Minute, UnauthorizedTTL: 30 * time.Second}},
		ServiceAccounts: options.ServiceAccounts{Extend: true, Lookup: true},
		Audit: options.Audit{
			Log: options.AuditLog{Format: "json", MaxAge: 366, MaxBackup: 100, MaxSize: 100, AuditDelivery: options.AuditDelivery{
				Version: "audit.k8s.io/v1", Mode: "blocking", Buffer: 10000, BatchSize: 1, MaxEventBytes: 102400, MaxBatchBytes: 10485760,
			}},
			Webhook: options.AuditWebhook{Backoff: 10 * time.Second, AuditDelivery: options.AuditDelivery{
				Version: "audit.k8s.io/v1", Mode: "batch", Buffer: 10000, BatchSize: 400, BatchWait: 30 * time.Second, Throttle: true, QPS: 10, Burst: 15,
				MaxEventBytes: 102400, MaxBatchBytes: 10485760,
			}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(options.Options{}, options.Authentication{})); diff != "" {
		t.Error(diff)
	}
	if got.Listen() != "0.0.0.0:6443" {
		t.Errorf("it listens on %s", got.Listen())
	}
}

func TestEffect(t *testing.T) {
	got, err := options.Parse(program, []string{
		"--secure-port=1234", "--bind-address", "::1", "--cert-dir=certs", "--tls-cert-file=c", "--tls-private-key-file=k",
		"--client-ca-file=ca", "--token-auth-file=t", "--anonymous-auth=false", "--authorization-mode=RBAC,AlwaysAllow",
		"--enable-admission-plugins=NamespaceExists", "--enable-admission-plugins=AlwaysDeny",
		"--disable-admission-plugins=NamespaceLifecycle,ServiceAccount",
		"--etcd-servers=http://a:1,http://b:2", "--etcd-servers=http://c:3", "--etcd-prefix=/x", "--etcd-cafile=ec", "--etcd-certfile=ef", "--etcd_keyfile=ek",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &options.Options{
		SecurePort: 1234, BindAddress: got.BindAddress, CertDir: "certs", TLSCertFile: "c", TLSPrivateKeyFile: "k",
		Authentication:     options.Authentication{ClientCAFile: "ca", TokenFile: "t", Webhook: got.Authentication.Webhook, OIDC: got.Authentication.OIDC, AnonymousGiven: true},
		ServiceAccounts:    got.ServiceAccounts,
		AuthorizationModes: []string{"RBAC", "AlwaysAllow"}, Authorization: got.Authorization,
		AdmissionPlugins: []string{"NamespaceExists", "AlwaysDeny"},
		Audit:            got.Audit,
		EtcdServers:      []string{"http://a:1", "http://b:2", "http://c:3"}, EtcdPrefix: "/x", EtcdCAFile: "ec", EtcdCertFile: "ef", EtcdKeyFile: "ek",
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(options.Options{}, options.Authentication{})); diff != "" {
		t.Error(diff)
	}
	if got.Listen() != "[::1]:1234" {
		t.Errorf("it listens on %s", got.Listen())
	}
}

func TestEffectOnAuthorization(t *testing.T) {
	got, err := parse("--authorization-mode=Webhook,ABAC", "--authorization-policy-file=p", "--authorization-webhook-config-file=k", "--authorization-webhook-version=v1",
		"--authorization-webhook-cache-authorized-ttl=1s", "--authorization-webhook-cache-unauthorized-ttl=-2s")
	if err != nil {
		t.Fatal(err)
	}
	want := options.Authorization{PolicyFile: "p", Webhook: options.AccessWebhook{ConfigFile: "k", Version: "v1", AuthorizedTTL: time.Second, UnauthorizedTTL: -2 * time.Second}}
	if got.Authorization != want || !slices.Equal(got.AuthorizationModes, []string{"Webhook", "ABAC"}) || got.WithoutEffect != nil {
		t.Errorf("%+v", got)
	}
	got, err = parse("--authorization-config=f", "--authorization-policy-file=p")
	if err != nil || got.Authorization.ConfigFile != "f" || got.Authorization.PolicyFile != "p" || got.AuthorizationModes != nil {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = parse("--authorization-mode=RBAC", "--authorization-config=")
	if err != nil || !slices.Equal(got.AuthorizationModes, []string{"RBAC"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEffectOnAuditAndShutdown(t *testing.T) {
	side := func(name string) []string {
		return strings.Fields(strings.ReplaceAll(`--X-version=audit.k8s.io/v1 --X-mode=blocking-strict --X-batch-buffer-size=1 --X-batch-max-size=2 --X-batch-max-wait=3s
			--X-batch-throttle-enable=true --X-batch-throttle-qps=4.5 --X-batch-throttle-burst=5 --X-truncate-enabled --X-truncate-max-event-size=6
			--X-truncate-max-batch-size=7`, "X", name))
	}
	got, err := parse(slices.Concat(side("audit-log"), side("audit-webhook"), []string{
		"--audit-policy-file=p", "--audit-log-path=l", "--audit-log-format=legacy", "--audit-log-maxage=1", "--audit-log-maxbackup=2", "--audit-log-maxsize=3",
		"--audit-log-compress", "--audit-webhook-config-file=w", "--audit-webhook-initial-backoff=9s",
		"--goaway-chance=0.01", "--livez-grace-period=1s", "--shutdown-delay-duration=2s", "--shutdown-send-retry-after",
		"--shutdown-watch-termination-grace-period=3s", "--strict-transport-security-directives=max-age=1,preload", `--cors-allowed-origins=//a\.example(:|$),^https://b$`,
	})...)
	if err != nil {
		t.Fatal(err)
	}
	both := options.AuditDelivery{
		Version: "audit.k8s.io/v1", Mode: "blocking-strict", Buffer: 1, BatchSize: 2, BatchWait: 3 * time.Second, Throttle: true, QPS: 4.5, Burst: 5,
		Truncate: true, MaxEventBytes: 6, MaxBatchBytes: 7,
	}
	want := *got
	want.Audit = options.Audit{
		PolicyFile: "p", Log: options.AuditLog{Path: "l", Format: "legacy", MaxAge: 1, MaxBackup: 2, MaxSize: 3, Compress: true, AuditDelivery: both},
		Webhook: options.AuditWebhook{ConfigFile: "w", Backoff: 9 * time.Second, AuditDelivery: both},
	}
	want.GoAwayChance, want.LivezGrace, want.ShutdownDelay, want.ShutdownWatchGrace = 0.01, time.Second, 2*time.Second, 3*time.Second
	want.ShutdownRetryAfter, want.HSTS, want.WithoutEffect = true, []string{"max-age=1", "preload"}, nil
	want.CORSAllowedOrigins = []string{`//a\.example(:|$)`, "^https://b$"}
	if diff := cmp.Diff(&want, got, cmpopts.IgnoreUnexported(options.Options{}, options.Authentication{})); diff != "" {
		t.Error(diff)
	}
	allow := got.AllowOrigin()
	for origin, want := range map[string]bool{
		"https://a.example": true, "http://a.example:80": true, "https://aXexample": false, "https://a.example.org": false, "https://b": true, "https://b:1": false,
	} {
		if allow(origin) != want {
			t.Errorf("%s is allowed: %v", origin, !want)
		}
	}
	if got, err = parse("--audit-webhook-batch-initial-backoff=7s", "--audit-log-mode=foo", "--audit-log-maxage=-1"); err != nil || got.Audit.Webhook.Backoff != 7*time.Second {
		t.Errorf("an old name, and wrong flags of a log that is not there: %v", err)
	}
	if got, err = parse(); err != nil || got.AllowOrigin() != nil {
		t.Errorf("without origins: %v", err)
	}
}

func TestEffectOnAuthentication(t *testing.T) {
	got, err := parse("--requestheader-client-ca-file=rc", "--requestheader-allowed-names=front,spare", "--requestheader-username-headers=X-Remote-User,X-User",
		"--requestheader-uid-headers=X-Remote-Uid", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--enable-bootstrap-token-auth", "--api-audiences=a,b", "--service-account-issuer=https://c", "--authentication-token-webhook-config-file=w",
		"--authentication-token-webhook-cache-ttl=-1s", "--authentication-token-webhook-version=v1")
	if err != nil {
		t.Fatal(err)
	}
	want := options.Authentication{
		Anonymous: true, BootstrapTokens: true, Audiences: []string{"a", "b"},
		Proxies: options.Proxies{
			CAFile: "rc", Names: []string{"front", "spare"}, User: []string{"X-Remote-User", "X-User"}, UID: []string{"X-Remote-Uid"},
			Group: []string{"X-Remote-Group"}, Extra: []string{"X-Remote-Extra-"},
		},
		Webhook: options.TokenWebhook{ConfigFile: "w", Version: "v1", CacheTTL: -time.Second},
		OIDC:    got.Authentication.OIDC,
	}
	ignored := cmpopts.IgnoreUnexported(options.Authentication{})
	if diff := cmp.Diff(want, got.Authentication, ignored); diff != "" {
		t.Error(diff)
	}
	if len(got.WithoutEffect) > 0 {
		t.Errorf("%q have no effect", got.WithoutEffect)
	}
	// The issuers are the audiences unless these are given. A version without a webhook is not checked.
	got, err = parse("--service-account-issuer=https://c", "--service-account-issuer=https://d,e", "--api-audiences=", "--authentication-token-webhook-version=v2")
	if err != nil || !cmp.Equal(got.Authentication.Audiences, []string{"https://c", "https://d,e"}) {
		t.Errorf("the audiences are %q, %v", got.Authentication.Audiences, err)
	}
}

// The flags of one issuer. A required claim has all that follows the first = as its value, also commas.
func TestIssuers(t *testing.T) {
	got, err := parse("--oidc-issuer-url=https://i", "--oidc-client-id=c", "--oidc-ca-file=ca", "--oidc-username-claim=email", "--oidc-username-prefix=-",
		"--oidc-groups-claim=g", "--oidc-groups-prefix=p:", "--oidc-required-claim=a=b,c=d", "--oidc-required-claim=e=", "--oidc-required-claim=a=b,=",
		"--oidc-signing-algs=RS512,ES256")
	if err != nil {
		t.Fatal(err)
	}
	want := options.OIDC{
		IssuerURL: "https://i", ClientID: "c", CAFile: "ca", UsernameClaim: "email", UsernamePrefix: "-", GroupsClaim: "g", GroupsPrefix: "p:",
		RequiredClaims: map[string]string{"a": "b,=", "e": ""}, SigningAlgorithms: []string{"RS512", "ES256"},
	}
	if diff := cmp.Diff(want, got.Authentication.OIDC); diff != "" {
		t.Error(diff)
	}
	got, err = parse("--authentication-config=file", "--anonymous-auth")
	if err != nil || got.Authentication.ConfigFile != "file" || !got.Authentication.AnonymousGiven || len(got.WithoutEffect) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestServiceAccounts(t *testing.T) {
	got, err := parse("--service-account-issuer=https://a", "--service-account-issuer=b", "--service-account-signing-key-file=s", "--service-account-key-file=k",
		"--service-account-key-file=l", "--service-account-jwks-uri=https://keys/k", "--service-account-max-token-expiration=24h",
		"--service-account-extend-token-expiration=false", "--service-account-lookup=false")
	if err != nil {
		t.Fatal(err)
	}
	want := options.ServiceAccounts{
		Issuers: []string{"https://a", "b"}, SigningKeyFile: "s", KeyFiles: []string{"k", "l"}, KeysURI: "https://keys/k", MaxExpiration: 24 * time.Hour,
	}
	if diff := cmp.Diff(want, got.ServiceAccounts); diff != "" || len(got.WithoutEffect) > 0 {
		t.Errorf("%s; %q have no effect", diff, got.WithoutEffect)
	}
	for flag, want := range map[string]string{
		"--service-account-issuer=":                       "--service-account-issuer should not be an empty string",
		"--service-account-max-token-expiration=30m":      "--service-account-max-token-expiration 30m0s must be between 1 hour and 2^32 seconds",
		"--service-account-max-token-expiration=-1h":      "must be between 1 hour and 2^32 seconds",
		"--service-account-max-token-expiration=1200000h": "must be between 1 hour and 2^32 seconds",
		"--service-account-jwks-uri=http://x":             "--service-account-jwks-uri requires https scheme, parsed as: http://x",
		"--service-account-jwks-uri=https://x y":          "--service-account-jwks-uri must be a valid URL: ",
		"--service-account-signing-endpoint=/run/signer":  "--service-account-signing-endpoint: external signers of tokens are not supported; use --service-account-signing-key-file",
		"--service-account-lookup=maybe":                  "--service-account-lookup",
	} {
		if _, err := parse(flag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", flag, err, want)
		}
	}
}

// The flags of envtest and kubeadm, without modes and plug-ins that are missing, are accepted. All that have no effect are named.
func TestWithoutEffect(t *testing.T) {
	got, err := parse("--allow-privileged=true", "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
		"-v=2", "--feature-gates=A=true,kube:B=false",
		"--runtime_config=api/all=true", "--enable-admission-plugins=PodSecurity,NamespaceLifecycle,LimitRanger", "--secure-port=1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--allow-privileged", "--enable-admission-plugins=LimitRanger,PodSecurity", "--feature-gates", "--runtime-config",
		"--service-cluster-ip-range", "--v",
	}
	if diff := cmp.Diff(want, got.WithoutEffect); diff != "" {
		t.Error(diff)
	}
}

// The flags have the plug-ins that admission.Order lists, in the same order.
func TestPluginsAreThoseOfAdmission(t *testing.T) {
	before, after := admission.Order()
	order := slices.Concat(before, after)
	offByDefault := []string{
		"AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "DenyServiceExternalIPs", "EventRateLimit", "ExtendedResourceToleration",
		"ImagePolicyWebhook", "LimitPodHardAntiAffinityTopology", "NamespaceAutoProvision", "NamespaceExists", "NodeRestriction",
		"OwnerReferencesPermissionEnforcement", "PodNodeSelector", "PodTolerationRestriction",
	}
	all := program
	all.AdmissionPlugins = slices.Sorted(slices.Values(order))
	if unique := slices.Compact(slices.Clone(all.AdmissionPlugins)); len(unique) != len(order) {
		t.Fatalf("admission.Order lists %d plug-ins, of which %d differ", len(order), len(unique))
	}
	for _, c := range []struct {
		flag string
		want func(name string) bool
	}{
		{"--enable-admission-plugins=" + strings.Join(all.AdmissionPlugins, ","), func(string) bool { return true }},
		{"--disable-admission-plugins=" + strings.Join(all.AdmissionPlugins, ","), func(string) bool { return false }},
		{"--v=0", func(name string) bool { return !slices.Contains(offByDefault, name) }},
	} {
		got, err := options.Parse(all, []string{"--storage-file=objects.db", c.flag})
		if err != nil {
			t.Errorf("%s: %v", c.flag, err)
			continue
		}
		want := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return !c.want(name) })
		if diff := cmp.Diff(want, got.AdmissionPlugins, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", c.flag, diff)
		}
	}
	for _, name := range offByDefault {
		if !slices.Contains(order, name) {
			t.Errorf("%s is not in admission.Order", name)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--nonsense", "unknown flag: --nonsense"},
		{"--nonsense=1", "unknown flag: --nonsense"},
		{"-x", `unknown shorthand flag: 'x' in -x`},
		{"extra", `plane does not take any arguments, got ["extra"]`},
		{"--secure-port=70000", "--secure-port 70000 must be between 0 and 65535"},
		{"--secure-port=-1", "--secure-port -1 must be between 0 and 65535"},
		{"--secure-port=x", `invalid argument "x" for "--secure-port" flag`},
		{"--secure-port", "flag needs an argument: --secure-port"},
		{"--bind-address=localhost", `invalid argument "localhost" for "--bind-address" flag: failed to parse IP`},
		{"--cert-dir=", "--cert-dir must not be empty"},
		{"--tls-cert-file=a", "--tls-cert-file and --tls-private-key-file must be given together"},
		{"--tls-private-key-file=a", "--tls-cert-file and --tls-private-key-file must be given together"},
		{"--etcd-servers=http://a", "--etcd-servers and --storage-file must not be given together"},
		{"--storage-file=", "--etcd-servers or --storage-file must be specified"},
		{"--etcd-certfile=a", "--etcd-certfile and --etcd-keyfile must be given together"},
		{"--authorization-mode=Foo", `authorization-mode "Foo" is not a valid mode`},
		{"--authorization-mode=rbac", `authorization-mode "rbac" is not a valid mode`},
		{"--authorization-mode=RBAC,RBAC", `authorization-mode ["RBAC" "RBAC"] has mode specified more than once`},
		{"--authorization-mode=Node,RBAC", "--authorization-mode: the mode Node is not available yet; available are AlwaysAllow, AlwaysDeny, RBAC, ABAC, Webhook"},
		{"--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"},
		{"--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed"},
		{"--authorization-mode=RBAC --authorization-policy-file=a", "cannot specify --authorization-policy-file without mode ABAC"},
		{"--authorization-policy-file=a", "cannot specify --authorization-policy-file without mode ABAC"},
		{"--authorization-webhook-config-file=a", "cannot specify --authorization-webhook-config-file without mode Webhook"},
		{"--authorization-mode=Webhook --authorization-webhook-config-file=a --authorization-webhook-version=v2", `unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"`},
		{"--authorization-mode=Foo,Foo,ABAC,Webhook", "authorization-mode \"Foo\" is not a valid mode\nauthorization-mode ABAC's authorization policy file not passed\n" +
			"authorization-mode Webhook's authorization config file not passed\nauthorization-mode [\"Foo\" \"Foo\" \"ABAC\" \"Webhook\"] has mode specified more than once"},
		{"--authorization-config=a --authorization-mode=RBAC", "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"},
		{"--authorization-config=a --authorization-webhook-version=v1", "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"},
		{"--authorization-config=a --authorization-webhook-cache-authorized-ttl=1s", "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"},
		{"--authentication-config=a --oidc-issuer-url=", "authentication-config file and oidc-* flags are mutually exclusive"},
		{"--authentication-config=a --oidc-username-claim=sub", "authentication-config file and oidc-* flags are mutually exclusive"},
		{"--oidc-issuer-url=https://a", "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
		{"--oidc-client-id=a", "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
		{"--oidc-signing-algs=RS256", "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
		{"--oidc-required-claim=a", `invalid argument "a" for "--oidc-required-claim" flag: malformed pair, expect string=string`},
		{"--enable-admission-plugins=Foo", `--enable-admission-plugins: plugin "Foo" is unknown`},
		{"--disable-admission-plugins=Foo", `--disable-admission-plugins: plugin "Foo" is unknown`},
		{"--enable-admission-plugins=PodSecurity --disable-admission-plugins=PodSecurity", "--enable-admission-plugins and --disable-admission-plugins both have PodSecurity"},
		{"--goaway-chance=0.03", "--goaway-chance 0.03 must be between 0 and 0.02"},
		{"--goaway-chance=NaN", "--goaway-chance NaN must be between 0 and 0.02"},
		{"--goaway-chance=x", `invalid argument "x" for "--goaway-chance" flag`},
		{"--livez-grace-period=-1s", "--livez-grace-period must not be negative"},
		{"--shutdown-delay-duration=-1s", "--shutdown-delay-duration must not be negative"},
		{"--shutdown-watch-termination-grace-period=-1s", "--shutdown-watch-termination-grace-period must not be negative"},
		{"--strict-transport-security-directives=max-age=1,foo", `"foo" is no directive`},
		{"--cors-allowed-origins=(", "--cors-allowed-origins: error parsing regexp"},
		{"--cors-allowed-origins=foo$", `"foo$" also matches hosts that end with it`},
		{"--cors-allowed-origins=^foo", `"^foo" also matches hosts that begin with it`},
		{"--audit-log-path=a --audit-log-mode=foo", `--audit-log-mode: "foo" is no mode: use batch, blocking, blocking-strict`},
		{"--audit-log-path=a --audit-log-format=foo", `--audit-log-format: "foo" is no format`},
		{"--audit-log-path=a --audit-log-version=audit.k8s.io/v1beta1", `--audit-log-version: "audit.k8s.io/v1beta1" is no version of events`},
		{"--audit-log-path=a --audit-log-maxage=-1", "--audit-log-maxage -1 must not be negative"},
		{"--audit-log-path=a --audit-log-maxbackup=-1", "--audit-log-maxbackup -1 must not be negative"},
		{"--audit-log-path=a --audit-log-maxsize=-1", "--audit-log-maxsize -1 must not be negative"},
		{"--audit-log-path=a --audit-log-mode=batch --audit-log-batch-buffer-size=0", "--audit-log-batch-buffer-size 0 must be positive"},
		{"--audit-log-path=a --audit-log-mode=batch --audit-log-batch-throttle-enable", "--audit-log-batch-throttle-qps 0 must be positive"},
		{"--audit-log-path=a --audit-log-truncate-enabled --audit-log-truncate-max-batch-size=7", "--audit-log-truncate-max-batch-size 7 must not be less than"},
		{"--audit-webhook-config-file=a --audit-webhook-batch-max-size=0", "--audit-webhook-batch-max-size 0 must be positive"},
		{"--audit-webhook-config-file=a --audit-webhook-batch-max-wait=-1s", "--audit-webhook-batch-max-wait -1s must not be negative"},
		{"--audit-webhook-config-file=a --audit-webhook-batch-throttle-burst=0", "--audit-webhook-batch-throttle-burst 0 must be positive"},
		{"--audit-webhook-config-file=a --audit-webhook-initial-backoff=0", "--audit-webhook-initial-backoff 0s must be positive"},
		{"--audit-webhook-config-file=a --audit-webhook-truncate-enabled --audit-webhook-truncate-max-event-size=0", "--audit-webhook-truncate-max-event-size 0 must be positive"},
		{"--anonymous-auth=maybe", `invalid argument "maybe" for "--anonymous-auth" flag`},
		{"--requestheader-allowed-names=a,", `--requestheader-allowed-names ["a" ""] has an empty value`},
		{"--requestheader-username-headers=,", `--requestheader-username-headers ["" ""] has an empty value`},
		{"--requestheader-uid-headers=,a", `--requestheader-uid-headers ["" "a"] has an empty value`},
		{"--requestheader-group-headers=a,", `--requestheader-group-headers ["a" ""] has an empty value`},
		{"--requestheader-extra-headers-prefix=a,", `--requestheader-extra-headers-prefix ["a" ""] has an empty value`},
		{"--authentication-token-webhook-config-file=a --authentication-token-webhook-version=v2", `--authentication-token-webhook-version: "v2" is no version of TokenReview: use v1 or v1beta1`},
		{"--authentication-token-webhook-cache-ttl=x", `invalid argument "x" for "--authentication-token-webhook-cache-ttl" flag`},
		{"--version=v1.30.0", "the version that is reported cannot be set"},
		{"--version=x", "want true, false or raw"},
	} {
		if got, err := parse(strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, error %v; want %q", c.args, got, err, c.want)
		}
	}
	if _, err := parse("--secure-port=-1", "--authorization-mode=Foo,Bar", "--enable-admission-plugins=Baz"); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("of four mistakes are named: %v", err)
	}
	if _, err := parse("--requestheader-uid-headers= "); err == nil || !strings.Contains(err.Error(), `--requestheader-uid-headers [" "] has an empty value`) {
		t.Errorf("a space: %v", err)
	}
	if _, err := options.Parse(program, nil); err == nil || !strings.Contains(err.Error(), "--etcd-servers or --storage-file") {
		t.Errorf("no storage: %v", err)
	}
}

// The error of an unknown flag proposes a flag with a similar name.
func TestUnknownFlagProposesAnother(t *testing.T) {
	for args, want := range map[string]string{
		"--nonsense":                          "unknown flag: --nonsense; --help lists the flags",
		"--storage-fil=db":                    "unknown flag: --storage-fil; did you mean --storage-file?",
		"--authorisation-mode=RBAC":           "unknown flag: --authorisation-mode; did you mean --authorization-mode?",
		"--etcd_server=http://a":              "unknown flag: --etcd_server; did you mean --etcd-servers?",
		"--token-file=a":                      "unknown flag: --token-file; --help lists the flags",
		"--port=1":                            "unknown flag: --port; --help lists the flags",
		"--etcd-key-file=a":                   "unknown flag: --etcd-key-file; did you mean --etcd-keyfile?",
		"-storage-file=db":                    "unknown shorthand flag: 's' in -storage-file=db; did you mean --storage-file?",
		"-x":                                  "unknown shorthand flag: 'x' in -x; --help lists the flags",
		"--" + strings.Repeat("audit", 20000): "unknown flag: --" + strings.Repeat("audit", 20000) + "; --help lists the flags",
	} {
		if got, err := parse(args); err == nil || err.Error() != want {
			t.Errorf("%.30s: %v, error %.200v; want %.200s", args, got, err, want)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"--help", "--secure-port=-1"}} {
		got, err := options.Parse(program, args)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&options.Options{Print: got.Print}, got, cmpopts.IgnoreUnexported(options.Options{}, options.Authentication{})); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
		for _, want := range []string{
			`\n  plane \[flags\]\n`, `(?m)^ +--secure-port int .*\(default 6443\)`, `(?m)^ +--storage-file string `,
			`(?m)^ +--event-ttl duration +.*\n? *.*\(no effect yet\)`, `(?m)^ +-h, --help `, `(?m)^ +--version version`,
			`(?m)^Authorization modes: AlwaysAllow, AlwaysDeny, RBAC, ABAC, Webhook\.$`, `(?m)^Admission plug-ins: AlwaysDeny, NamespaceLifecycle, NamespaceExists\.$`,
		} {
			if !regexp.MustCompile(want).MatchString(got.Print) {
				t.Errorf("%q: usage lacks %s", args, want)
			}
		}
		for line := range strings.Lines(got.Print) {
			if len(line) > 200 {
				t.Errorf("usage has a line of %d bytes: %s", len(line), line)
			}
		}
	}
	for args, want := range map[string]string{"--version": "plane v1.2.3\n", "--version=true": "plane v1.2.3\n", "--version=raw": "v1.2.3\n", "--version=false --storage-file=x": ""} {
		got, err := options.Parse(program, strings.Fields(args))
		if err != nil || got.Print != want {
			t.Errorf("%s: %q, %v; want %q", args, got.Print, err, want)
		}
	}
}

// samples has, for each type of flag, a value that is accepted and one that is refused.
var samples = map[string][2]string{
	"bool": {"true", "%zz"}, "int": {"1", "%zz"}, "uint": {"1", "-1"}, "ip": {"127.0.0.1", "%zz"}, "duration": {"1m", "%zz"},
	"float": {"0.01", "%zz"}, "float32": {"0.5", "%zz"}, "int32Slice": {"1,2", "%zz"}, "stringToString": {"a,b='c'", "%zz"},
	"mapStringString": {"api/all=true,a/v1=false", "=b"}, "colonSeparatedMultimapStringString": {"A=true,kube:B=false", "%zz"},
	"namedCertKey": {"cert,key:example.com", "%zz"}, "portRange": {"30000-32767", "%zz"}, "quantity": {"1Mi", "%zz"},
	"Level": {"2", "%zz"}, "pattern=N,...": {"a=1,b*=2", "%zz"},
	"string": {"x"}, "strings": {"x,y"}, "stringArray": {"x"},
}

// Every flag that kube-apiserver 1.37.1 lists with --help, and the deprecated ones that it does not list, is accepted with a value
// of its type, and refused with another.
func TestFlagsOfKubeAPIServer(t *testing.T) {
	file, err := os.Open("testdata/kube-apiserver-1.37.1-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	effective := strings.Fields(`anonymous-auth bind-address cert-dir client-ca-file disable-admission-plugins
		enable-admission-plugins etcd-cafile etcd-certfile etcd-keyfile etcd-prefix etcd-servers secure-port tls-cert-file
		tls-private-key-file token-auth-file help version
		cors-allowed-origins strict-transport-security-directives goaway-chance livez-grace-period shutdown-delay-duration
		shutdown-send-retry-after shutdown-watch-termination-grace-period
		api-audiences authentication-token-webhook-cache-ttl authentication-token-webhook-config-file authentication-token-webhook-version
		enable-bootstrap-token-auth requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
		requestheader-group-headers requestheader-uid-headers requestheader-username-headers`)
	lines, count := bufio.NewScanner(file), 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		name, kind, _ := strings.Cut(lines.Text(), " ")
		count++
		if slices.Contains(effective, name) || strings.HasPrefix(name, "audit-") || strings.HasPrefix(name, "oidc-") || strings.HasPrefix(name, "service-account-") || strings.HasPrefix(name, "authorization-") || name == "authentication-config" {
			continue
		}
		sample, ok := samples[kind]
		if !ok {
			t.Errorf("--%s is of the type %s", name, kind)
			continue
		}
		got, err := parse("--" + name + "=" + sample[0])
		if err != nil {
			t.Errorf("--%s=%s: %v", name, sample[0], err)
		} else if want := []string{"--" + name}; !slices.Equal(got.WithoutEffect, want) {
			t.Errorf("--%s has no effect, and is said to be %q", name, got.WithoutEffect)
		}
		if sample[1] == "" {
			continue
		}
		if _, err := parse("--" + name + "=" + sample[1]); err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("--%s=%s: error %v", name, sample[1], err)
		}
	}
	if lines.Err() != nil || count < 170 {
		t.Errorf("%d flags, error %v", count, lines.Err())
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--runtime-config", "a=b,c")
	f.Add("--tls-sni-cert-key", "a,b:c,d")
	f.Fuzz(func(t *testing.T, name, value string) {
		if got, err := parse(name + "=" + value); (got == nil) == (err == nil) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
