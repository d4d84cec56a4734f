import { Socket } from "node:net";
import postgres from "postgres";
import { sleep, systemClock } from "../base/clock.ts";
import type { Connect } from "./connection.ts";
import { connectionEnded } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";

const PORT_DEFAULT = 5432;

/** Time for a closed client to say goodbye to the server. */
const GOODBYE_MS = 1_000;

type Options = Omit<
	Parameters<typeof postgres>[1] & object,
	"max" | "backoff" | "socket" | "idle_timeout" | "max_lifetime" | "fetch_types"
>;

/**
 * A client of `url` with a single connection. It parses the URL as psql and the queue's client do, because the driver
 * does not:
 * - It cuts IPv6 addresses at the first colon and does not know socket folders.
 * - It sends `host`, `port`, `user` and `password` of the query as settings.
 * - It uses the encoded name of the database.
 * - If a password contains a comma, it takes the part after @ for a list of hosts and shows it in errors. So these
 *   characters stay encoded.
 */
export function newClient(url: string, options: Options, backoff = createReconnectBackoff(systemClock.monotonicMs)) {
	const address = new URL(url);
	const { searchParams: query } = address;
	const host = query.get("host") ?? decodeURIComponent(address.hostname);
	const name = decodeURIComponent(address.pathname.slice(1));
	const database = name === "" ? {} : { database: name };
	const given = { onnotice: () => {}, ...options, ...database, ...takenOut(query, ["user", "password"]) };
	// Useless with a single host: the driver would retry it for ever, and does not know `any`. Starts check what the
	// server may do.
	takenOut(query, ["target_session_attrs"]);
	if (!query.has("host") && !query.has("port") && !/^[[/]/.test(host)) return paced(address, given, backoff);
	const port = Number(query.get("port") ?? (address.port || PORT_DEFAULT));
	takenOut(query, ["host", "port"]);
	// The driver's types lack the list form; it would cut a text at each colon and comma.
	const place: object = host.startsWith("/")
		? { path: `${host}/.s.PGSQL.${port}` }
		: { host: [host.replace(/^\[|\]$/g, "")], port: [port] };
	return paced(address, { ...given, ...place }, backoff);
}

/** Returns a function that opens pooled connections with these session settings. */
export function connectTo(url: string, connection: NonNullable<Options["connection"]>): Connect {
	return (hooks, backoff) => newClient(url, { ...hooks, connect_timeout: 5, connection }, backoff);
}

/** Runs `work` with a client of `url`, then closes the client. */
export async function withClient<Result>(
	url: string,
	work: (client: postgres.Sql) => Promise<Result>,
	connectSeconds = 10,
): Promise<Result> {
	const client = newClient(url, { connect_timeout: connectSeconds });
	try {
		return await work(client);
	} finally {
		await client.end({ timeout: 1 });
	}
}

/** Removes parameters that are not session settings but that the driver would send as such. */
function takenOut(query: URLSearchParams, names: readonly string[]): Record<string, string> {
	const taken = names.flatMap((name) => {
		const value = query.get(name);
		return value === null ? [] : [[name, value] as const];
	});
	for (const [name] of taken) query.delete(name);
	return Object.fromEntries(taken);
}

/** Where the driver connects, as it parsed the URL. */
interface Place {
	readonly path: string | false;
	readonly host: readonly string[];
	readonly port: readonly number[];
}

/**
 * The driver with our own sockets. Its own reconnects have no pause after a socket closed without an error, and connect
 * even for a client that ended.
 *
 * The client ends with its connection: a second session would lack the locks and search path of the first, and a
 * statement between a socket's error and close would never be answered.
 */
function paced({ href }: URL, options: Options, backoff: ReconnectBackoff): postgres.Sql {
	let ended = false;
	let socket: Socket | undefined;
	const client = postgres(href, {
		...options,
		max: 1,
		backoff: 0 as unknown as boolean,
		idle_timeout: 0,
		max_lifetime: null,
		// Disables the driver's own query for array types: if interrupted, its unhandled rejection ends the process.
		fetch_types: false,
		onclose: gone,
		// The driver's types lack the option `socket`.
		...{
			async socket({ path, host, port }: Place) {
				const pauseMs = backoff.pauseMs();
				if (pauseMs > 0) await sleep(systemClock, pauseMs);
				if (ended) throw connectionEnded();
				backoff.made();
				const place = { host: host[0] as string, port: port[0] as number };
				const made = new Socket();
				socket = made;
				// Ends the client before the driver reports the error: until then it would accept statements.
				made.once("error", () => gone(0));
				// In a later tick, after the driver has added its listener for socket errors.
				setImmediate(() => (ended ? made.destroy() : made.connect(path === false ? place : { path })));
				// The driver verifies the certificate for this host name.
				return Object.assign(made, place);
			},
		},
	});
	function gone(id: number): void {
		void client.end({ timeout: 0 });
		options.onclose?.(id);
	}
	const end = client.end;
	client.end = async (how) => {
		// A client that is given time may still connect and finish.
		if (how?.timeout === 0) ended = true;
		await end(how);
		ended = true;
		// Destroys the socket of a server that does not respond: the driver waits for its close.
		setTimeout(() => socket?.destroy(), GOODBYE_MS).unref();
	};
	return client;
}
