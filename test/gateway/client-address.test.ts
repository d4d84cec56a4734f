import { describe, expect, test } from "bun:test";
import { createClientAddress } from "../../src/gateway/client-address.ts";

describe("the address of a client", () => {
	const address = createClientAddress(["10.0.0.0/8", "192.0.2.1", "fd00::/8"]);

	test("is the connection's address if there is no trusted proxy", () => {
		for (const header of ["10.0.0.1", null]) expect(createClientAddress([])("203.0.113.9", header)).toBe("203.0.113.9");
	});

	test("is the last address of x-forwarded-for that is not a trusted proxy's", () => {
		expect(address("10.0.0.1", "198.51.100.7")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "1.1.1.1, 198.51.100.7, 10.9.9.9, 192.0.2.1")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "10.0.0.5,10.0.0.6")).toBe("10.0.0.5");
	});

	test("cannot be chosen by a peer that is not trusted", () => {
		expect(address("203.0.113.9", "198.51.100.7, 10.0.0.1")).toBe("203.0.113.9");
	});

	test("causes one warning in the log if the connection's proxy is not trusted", () => {
		const told: string[] = [];
		const address = createClientAddress(["10.0.0.0/8"], (peer) => told.push(peer));
		address("10.0.0.1", "198.51.100.7");
		address("203.0.113.9", null);
		expect(told).toEqual([]);
		for (const peer of ["::ffff:203.0.113.9", "203.0.113.9", "203.0.113.10"]) address(peer, "198.51.100.7");
		expect(told).toEqual(["203.0.113.9"]);
	});

	test("is the last valid address if x-forwarded-for is malformed", () => {
		for (const header of ["", "unknown", "1.2.3", "evil\u0000", "198.51.100.7:", "1.2.3:80", "[unknown]:80", "a,b,c"])
			expect(address("10.0.0.1", header)).toBe("10.0.0.1");
		expect(address("10.0.0.1", "198.51.100.7, unknown, 10.0.0.2")).toBe("10.0.0.2");
	});

	test("has no port even if the header has one", () => {
		expect(address("10.0.0.1", "198.51.100.7:443")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "198.51.100.7:443, [fd00::2]:80, 10.0.0.2:5000")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "[2001:db8::7]:443")).toBe("2001:db8::7");
		expect(address("10.0.0.1", "[2001:db8::7]")).toBe("2001:db8::7");
		expect(address("10.0.0.1", "[::ffff:198.51.100.7]:1")).toBe("198.51.100.7");
	});

	test("is IPv4 if written as IPv4-mapped IPv6, and matches IPv6 networks", () => {
		expect(address("::ffff:10.0.0.1", "::ffff:198.51.100.7")).toBe("198.51.100.7");
		expect(address("fd00::1", "2001:db8::7")).toBe("2001:db8::7");
		expect(address("2001:db8::1", "198.51.100.7")).toBe("2001:db8::1");
	});

	test("is found in every spelling of an IPv4-mapped IPv6 address", () => {
		const long = ["0:0:0:0:0:ffff:198.51.100.7", "0000:0000:0000:0000:0000:FFFF:C633:6407", "0::ffff:c633:6407"];
		for (const one of ["::FFFF:198.51.100.7", "::ffff:c633:6407", "[::ffff:c633:6407]:443", ...long]) {
			expect([one, address("10.0.0.1", one)]).toEqual([one, "198.51.100.7"]);
			expect([one, address(one, "203.0.113.9")]).toEqual([one, one.startsWith("[") ? one : "198.51.100.7"]);
		}
		expect(address("10.0.0.1", "198.51.100.7, ::ffff:a00:2")).toBe("198.51.100.7");
		for (const other of ["2001:db8::ffff:c633:6407", "::fffe:c633:6407", "::ffff:0:c633:6407", "64:ff9b::c633:6407"])
			expect(address("10.0.0.1", other)).toBe(other);
	});
});
