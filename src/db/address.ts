import { accessSync, constants } from "node:fs";
import { isPercentDecodable } from "../base/environment-reader.ts";

const PORT_DEFAULT = 5432;
const KEEPALIVE_S_DEFAULT = 60;
const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
/** Parameters of libpq that are accepted only with these values, because the client always behaves as they say. */
const FIXED: Readonly<Record<string, string>> = {
	target_session_attrs: "any read-write primary",
	channel_binding: "disable prefer",
	gssencmode: "disable prefer",
	load_balance_hosts: "disable",
	sslcertmode: "disable allow",
	sslcompression: "0",
	sslnegotiation: "postgres",
	sslsni: "1",
};
const UNSUPPORTED: ReadonlySet<string> = new Set(
	(
		"gssdelegation gsslib hostaddr krbsrvname max_protocol_version min_protocol_version oauth_client_id " +
		"oauth_client_secret oauth_issuer oauth_scope passfile replication require_auth requirepeer requiressl " +
		"scram_client_key scram_server_key service servicefile ssl_max_protocol_version ssl_min_protocol_version sslcert " +
		"sslcrl sslcrldir sslkey sslkeylogfile sslpassword"
	).split(" "),
);
const NUMBERS = [
	...["connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"],
	"tcp_user_timeout",
] as const;

type NumberName = (typeof NUMBERS)[number];
type Setting = readonly [name: string, value: string];

export interface DatabaseHost {
	readonly host: string;
	readonly port: number;
}

/** A database address, parsed as libpq does. Parameters that libpq does not know become settings of the session. */
export interface DatabaseAddress {
	/** Hosts, tried in order. A host that starts with `/` is the folder of a Unix socket. */
	readonly hosts: readonly DatabaseHost[];
	readonly user: string;
	readonly password: string;
	/** Name of the database; empty: the same as the user's name. */
	readonly database: string;
	readonly applicationName: string | undefined;
	readonly sslMode: (typeof SSL_MODES)[number];
	/** Path of a file with root certificates, or `system`. */
	readonly sslRootCert: string | undefined;
	/** Longest time to connect, in seconds; undefined if the address has no `connect_timeout`. */
	readonly connectS: number | undefined;
	/** Seconds without traffic before the first TCP keepalive probe; 0: no probes. */
	readonly keepAliveS: number;
	/** TCP options: idle and interval in seconds, count, user timeout in milliseconds; by default the system's values. */
	readonly keepAlive: Readonly<Partial<Record<NumberName, number>>>;
	/** Settings of the session in order. If a name occurs twice, the last value counts. */
	readonly settings: readonly Setting[];
}

class Problem extends Error {}

/** Describes an invalid URL and how to correct it; undefined if the URL is valid. `url` must be parsable. */
export function addressProblem(url: string): string | undefined {
	try {
		const { sslRootCert } = parseAddress(url);
		if (sslRootCert !== undefined && sslRootCert !== "system") accessSync(sslRootCert, constants.R_OK);
		return undefined;
	} catch (error) {
		return error instanceof Problem ? error.message : "has an sslrootcert that is no readable file";
	}
}

/** Parses a URL for which `addressProblem` found no problem. */
export function parseAddress(url: string): DatabaseAddress {
	const { hostname, port, pathname, hash, username, password, searchParams } = new URL(url);
	if (!isPercentDecodable(hostname) || !isPercentDecodable(pathname))
		throw new Problem("has a % in its host or its database that begins no sign: write it as %25");
	// A fragment is refused: settings that are appended to the URL would become part of it.
	if (hash !== "" || url.endsWith("#")) throw new Problem("has a # in it: write it as %23");
	const query = new Map(searchParams);
	const take = (name: string) => {
		const value = query.get(name);
		query.delete(name);
		return value;
	};
	const numbers = Object.fromEntries(
		NUMBERS.flatMap((name) => {
			const value = take(name);
			return value === undefined ? [] : [[name, numberIn(name, value)]];
		}),
	) as DatabaseAddress["keepAlive"];
	refuseUnsupported(query);
	const sslRootCert = take("sslrootcert");
	const address = {
		hosts: hostsOf(take("host") ?? decodeURIComponent(hostname), take("port") ?? port),
		user: take("user") ?? decodeURIComponent(username),
		password: take("password") ?? decodeURIComponent(password),
		database: take("dbname") ?? decodeURIComponent(pathname.slice(1)),
		applicationName: query.get("application_name") ?? take("fallback_application_name"),
		sslMode: sslModeOf(take("sslmode"), sslRootCert),
		sslRootCert,
		connectS: numbers.connect_timeout || undefined,
		keepAliveS: numbers.keepalives === 0 ? 0 : numbers.keepalives_idle || KEEPALIVE_S_DEFAULT,
		keepAlive: numbers,
	};
	query.delete("application_name");
	return { ...address, settings: [...optionsIn(take("options") ?? ""), ...query] };
}

function refuseUnsupported(query: Map<string, string>): void {
	for (const [name, value] of query) {
		const fixed = FIXED[name]?.split(" ");
		if (fixed?.includes(value)) query.delete(name);
		else if (name === "channel_binding")
			throw new Problem("requires channel_binding, which is not supported: use sslmode=verify-full instead");
		else if (fixed !== undefined) throw new Problem(`has a ${name} that is not supported: use ${fixed.join(" or ")}`);
		else if (UNSUPPORTED.has(name)) throw new Problem(`has the parameter ${name}, which is not supported: remove it`);
	}
}

function numberIn(name: string, value: string): number {
	if (!/^\d{1,8}$/.test(value)) throw new Problem(`must have a whole number as its ${name}`);
	return Number(value);
}

function hostsOf(hosts: string, ports: string): readonly DatabaseHost[] {
	const names = hosts.split(",");
	const numbers = ports.split(",");
	if (numbers.length !== 1 && numbers.length !== names.length)
		throw new Problem(`has ${numbers.length} ports for ${names.length} hosts`);
	return names.map((name, at) => {
		const port = (numbers.length === 1 ? numbers[0] : numbers[at]) || String(PORT_DEFAULT);
		if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
			throw new Problem("has a port that is no number from 1 to 65535");
		return { host: name.replace(/^\[|\]$/g, "") || "localhost", port: Number(port) };
	});
}

/** Like libpq: with a root certificate, `require` also checks the issuer, and `system` implies `verify-full`. */
function sslModeOf(mode: string | undefined, rootCert: string | undefined): DatabaseAddress["sslMode"] {
	const known = SSL_MODES.find((one) => one === mode);
	// The message does not repeat an unknown value, because it may be a secret pasted by mistake.
	if (mode !== undefined && known === undefined)
		throw new Problem(
			`must have one of ${SSL_MODES.join(", ")} as its sslmode${/^[A-Za-z-]+$/.test(mode) ? `; got "${mode}"` : ""}`,
		);
	if (rootCert === "system" && known !== undefined && known !== "verify-full")
		throw new Problem("must have sslmode=verify-full with sslrootcert=system");
	if (rootCert === "system") return "verify-full";
	return known === "require" && rootCert !== undefined ? "verify-ca" : (known ?? "disable");
}

/** Settings from `options`: `-c name=value` or `--name=value`, separated by blanks; a backslash escapes a character. */
function optionsIn(text: string): readonly Setting[] {
	const words = (text.match(/(?:\\.|\S)+/gs) ?? []).map((word) => word.replace(/\\(.)/gs, "$1"));
	const settings: Setting[] = [];
	for (let at = 0; at < words.length; at++) {
		const word = words[at] as string;
		const setting = word === "-c" ? words[++at] : /^(?:-c|--)(.+)/s.exec(word)?.[1];
		const [, name, value] = /^([\w.-]+)=(.*)$/s.exec(setting ?? "") ?? [];
		if (name === undefined || value === undefined)
			throw new Problem("has options other than `-c name=value`, which are not supported");
		settings.push([name.replaceAll("-", "_"), value]);
	}
	return settings;
}
