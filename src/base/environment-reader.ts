export type Environment = Readonly<Record<string, string | undefined>>;

export type EnvironmentReader = ReturnType<typeof createEnvironmentReader>;

/**
 * Reads environment variables by type. Reports an invalid value to `note` and returns the default. Empty means unset.
 */
export function createEnvironmentReader(env: Environment, note: (problem: string) => void) {
	const text = (name: string): string | null => env[name] || null;
	const list = (name: string): string[] =>
		(text(name) ?? "")
			.split(",")
			.map((entry) => entry.trim())
			.filter((entry) => entry !== "");
	return {
		text,
		list,
		isSet: (...names: string[]) => names.some((name) => text(name) !== null),
		integer(name: string, otherwise: number, min: number, max: number): number {
			const value = text(name);
			if (value === null) return otherwise;
			const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
			if (number >= min && number <= max) return number;
			note(`${name} must be a whole number from ${min} to ${max}, got ${JSON.stringify(value)}`);
			return otherwise;
		},
		/** Reads one of `options`; the default is the first. */
		choice<const T extends string>(name: string, options: readonly [T, ...T[]]): T {
			const value = text(name);
			if (value === null) return options[0];
			const chosen = options.find((option) => option === value);
			if (chosen === undefined) note(`${name} must be one of ${options.join(", ")}; got ${JSON.stringify(value)}`);
			return chosen ?? options[0];
		},
		pattern(name: string, pattern: RegExp, demand: string): string | null {
			const value = text(name);
			if (value === null || pattern.test(value)) return value;
			note(`${name} ${demand}, got ${JSON.stringify(value)}`);
			return null;
		},
		/** Reads a URL. Error texts do not repeat the URL, because it may contain a password. */
		url(name: string, protocols: readonly string[], isOrigin = false): string | null {
			const given = text(name);
			if (given === null) return null;
			if (/^["'`]/.test(given)) {
				note(`${name} must not be in quotation marks, because they become part of the value`);
				return null;
			}
			const value = withHost(given.trim());
			const url = URL.parse(value);
			const isMeant = protocols.some((protocol) => value.startsWith(`${protocol}//`));
			if (isMeant && (url === null || isCutShort(url))) {
				note(
					`${name} is not a valid address: it needs a host, a port up to 65535, and special characters of user and password percent-encoded (%3A, %2F, %40)`,
				);
				return null;
			}
			if (url === null || !protocols.includes(url.protocol)) {
				note(
					`${name} must be an address that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`,
				);
				return null;
			}
			if (!isPercentDecodable(url.username) || !isPercentDecodable(url.password)) {
				note(`${name} has a % in its user or password that is not percent-encoding: write it as %25`);
				return null;
			}
			const bare = url.username + url.password + url.search + url.hash === "" && url.pathname === "/";
			if (isOrigin && !bare) note(`${name} must contain only scheme, host and port`);
			return value;
		},
	};
}

const HOST = String.raw`(?:\[[\da-fA-F:.]+\]|[\w.%-]+)(?::\d*)?`;
const HOST_LIST = new RegExp(
	`^(postgres(?:ql)?://(?:[^/?#]*@)?)(${HOST}(?:,${HOST})+)([/][^?#]*)?(?:[?]([^#]*))?(#.*)?$`,
);

/**
 * Turns a PostgreSQL address into a URL that can be parsed. Moves a list of hosts to the query, and adds a placeholder
 * if the address has a user but no host.
 */
function withHost(address: string): string {
	const [, start, list, path = "", query = "", hash = ""] = HOST_LIST.exec(address) ?? [];
	if (start === undefined || list === undefined)
		return address.replace(/^(postgres(?:ql)?:\/\/[^/?#@]*@)(?=[/?:][^#]*[?&]host=)/, "$1localhost");
	const hosts = list.split(",").map((host) => /^(.*?)(?::(\d*))?$/.exec(host) ?? []);
	const all = [1, 2].map((part) => hosts.map((host) => host[part] ?? "").join(","));
	return `${start}localhost${path}?host=${all[0]}&port=${all[1]}${query && "&"}${query}${hash}`;
}

/**
 * True if a character of the password that must be escaped ended the host part: the rest would be read, and shown, as
 * path, query or fragment. Web addresses may contain an @ there.
 */
function isCutShort({ protocol, pathname, search, hash }: URL): boolean {
	return !protocol.startsWith("http") && (/@/.test(pathname + hash) || /^\?[^=]*@/.test(search));
}

export function isPercentDecodable(text: string): boolean {
	try {
		decodeURIComponent(text);
		return true;
	} catch {
		return false;
	}
}
