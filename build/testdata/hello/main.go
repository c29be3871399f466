// Command hello is the smallest program that knows its version.
package main

var stamped = "unknown"

func main() { println("hello from", stamped) }
