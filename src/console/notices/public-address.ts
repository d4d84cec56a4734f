import { BlockList, isIP } from "node:net";

/** IANA's special-purpose registries for IPv4, and multicast and reserved ranges. */
const SPECIAL_V4 = [
	"0.0.0.0/8",
	"10.0.0.0/8",
	"100.64.0.0/10",
	"127.0.0.0/8",
	"169.254.0.0/16",
	"172.16.0.0/12",
	"192.0.0.0/24",
	"192.0.2.0/24",
	"192.31.196.0/24",
	"192.52.193.0/24",
	"192.88.99.0/24",
	"192.168.0.0/16",
	"192.175.48.0/24",
	"198.18.0.0/15",
	"198.51.100.0/24",
	"203.0.113.0/24",
	"224.0.0.0/3",
];
/** The only IPv6 range allocated to the public, */
const GLOBAL_V6 = "2000::/3";
/** except ranges that embed other addresses (6to4, Teredo) or are for documentation and tests. */
const SPECIAL_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"];

const special = listOf([...SPECIAL_V4, ...SPECIAL_V6]);
const global6 = listOf([GLOBAL_V6]);

/** True for an IP address of the public internet; false for private and special networks and for anything else. */
export function isPublicAddress(address: string): boolean {
	const family = isIP(address);
	if (family === 4) return !special.check(address, "ipv4");
	return family === 6 && global6.check(address, "ipv6") && !special.check(address, "ipv6");
}

function listOf(subnets: readonly string[]): BlockList {
	const list = new BlockList();
	for (const subnet of subnets) {
		const [address = "", bits] = subnet.split("/");
		list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
	}
	return list;
}
