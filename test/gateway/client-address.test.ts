import { describe, expect, test } from "bun:test";
import { createClientAddress } from "../../src/gateway/client-address.ts";

describe("a client's address", () => {
	test("is the peer's where no proxy is trusted, whatever the header says", () => {
		const address = createClientAddress([]);
		expect(address("203.0.113.9", "10.0.0.1")).toBe("203.0.113.9");
		expect(address("203.0.113.9", null)).toBe("203.0.113.9");
	});

	test("is the last hop that a trusted proxy did not vouch for, however many the client made up before it", () => {
		const address = createClientAddress(["10.0.0.0/8", "192.0.2.1"]);
		expect(address("10.0.0.1", "198.51.100.7")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "1.1.1.1, 198.51.100.7, 10.9.9.9, 192.0.2.1")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "10.0.0.5,10.0.0.6")).toBe("10.0.0.5");
	});

	test("an untrusted peer cannot choose its address", () => {
		const address = createClientAddress(["10.0.0.0/8"]);
		expect(address("203.0.113.9", "198.51.100.7, 10.0.0.1")).toBe("203.0.113.9");
	});

	test("of a proxy that is not named one hears once, and never of one that is, nor of a client without the header", () => {
		const told: string[] = [];
		const address = createClientAddress(["10.0.0.0/8"], (peer) => told.push(peer));
		address("10.0.0.1", "198.51.100.7");
		address("203.0.113.9", null);
		expect(told).toEqual([]);
		for (const peer of ["::ffff:203.0.113.9", "203.0.113.9", "203.0.113.10"]) address(peer, "198.51.100.7");
		expect(told).toEqual(["203.0.113.9"]);
	});

	test("stays at the last hop that is an address if the header holds anything else", () => {
		const address = createClientAddress(["10.0.0.0/8"]);
		for (const header of ["", "unknown", "1.2.3", "evil\u0000", "198.51.100.7:", "1.2.3:80", "[unknown]:80", "a,b,c"])
			expect(address("10.0.0.1", header)).toBe("10.0.0.1");
		expect(address("10.0.0.1", "198.51.100.7, unknown, 10.0.0.2")).toBe("10.0.0.2");
	});

	test("is the same with a port, as some proxies write it", () => {
		const address = createClientAddress(["10.0.0.0/8", "fd00::/8"]);
		expect(address("10.0.0.1", "198.51.100.7:443")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "198.51.100.7:443, [fd00::2]:80, 10.0.0.2:5000")).toBe("198.51.100.7");
		expect(address("10.0.0.1", "[2001:db8::7]:443")).toBe("2001:db8::7");
		expect(address("10.0.0.1", "[2001:db8::7]")).toBe("2001:db8::7");
		expect(address("10.0.0.1", "[::ffff:198.51.100.7]:1")).toBe("198.51.100.7");
	});

	test("IPv4 in the form of IPv6 is the same address; IPv6 networks are matched", () => {
		const address = createClientAddress(["10.0.0.0/8", "fd00::/8"]);
		expect(address("::ffff:10.0.0.1", "::ffff:198.51.100.7")).toBe("198.51.100.7");
		expect(address("fd00::1", "2001:db8::7")).toBe("2001:db8::7");
		expect(address("2001:db8::1", "198.51.100.7")).toBe("2001:db8::1");
	});

	test("IPv4 in the form of IPv6 is the same address, however a proxy writes that: with letters of either size, in hex, at full length", () => {
		const address = createClientAddress(["10.0.0.0/8"]);
		const written = [
			"::FFFF:198.51.100.7",
			"::ffff:c633:6407",
			"[::ffff:c633:6407]:443",
			"0:0:0:0:0:ffff:198.51.100.7",
		];
		for (const one of [...written, "0000:0000:0000:0000:0000:FFFF:C633:6407", "0::ffff:c633:6407"]) {
			expect([one, address("10.0.0.1", one)]).toEqual([one, "198.51.100.7"]);
			expect([one, address(one, "203.0.113.9")]).toEqual([one, one.startsWith("[") ? one : "198.51.100.7"]);
		}
		expect(address("10.0.0.1", "198.51.100.7, ::ffff:a00:2")).toBe("198.51.100.7");
		for (const other of ["2001:db8::ffff:c633:6407", "::fffe:c633:6407", "::ffff:0:c633:6407", "64:ff9b::c633:6407"])
			expect(address("10.0.0.1", other)).toBe(other);
	});
});
