// Command hello is the smallest program an image can be made of.
package main

func main() { println("hello") }
