package server

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	apiversion "k8s.io/apimachinery/pkg/version"
)

// versionInfo returns the answer of /version: the Kubernetes release whose API this library implements, and how the program was
// built.
func versionInfo() apiversion.Info {
	info := apiversion.Info{
		Major: "1",
		Minor: "37",
		// As in kube-apiserver without --emulated-version: https://kep.k8s.io/4330.
		EmulationMajor: "1", EmulationMinor: "37", MinCompatibilityMajor: "1", MinCompatibilityMinor: "36",
		GitVersion:   "v1.37.0+keelson",
		GitCommit:    "unknown",
		GitTreeState: "unknown",
		BuildDate:    "1970-01-01T00:00:00Z",
		GoVersion:    goruntime.Version(),
		Compiler:     goruntime.Compiler,
		Platform:     fmt.Sprintf("%s/%s", goruntime.GOOS, goruntime.GOARCH),
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.GitCommit = s.Value
		case "vcs.time":
			info.BuildDate = s.Value
		case "vcs.modified":
			info.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	return info
}
