//go:build race

package bodycost_test

// raceDetector is true if the tests run with the race detector. Then pools drop buffers at random, and more is allocated.
const raceDetector = true
