//go:build !race

package bodycost_test

const raceDetector = false
