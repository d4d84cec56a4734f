import { Socket } from "node:net";
import postgres from "postgres";
import { sleep, systemClock } from "../base/clock.ts";
import type { Connect } from "./connection.ts";
import { connectionEnded } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";

const PORT_DEFAULT = 5432;

/** A closed client has this long to say goodbye to the server. */
const GOODBYE_MS = 1_000;

type Options = Omit<
	Parameters<typeof postgres>[1] & object,
	"max" | "backoff" | "socket" | "idle_timeout" | "max_lifetime" | "fetch_types"
>;

/**
 * A client of `url` with one connection in its life. It reads the address as psql and the queue's client do; the driver
 * does not:
 * - It cuts an IPv6 address at its first colon and does not know socket folders.
 * - It sends `host`, `port`, `user` and `password` of a query to the server as if they were settings.
 * - It requests a database by its encoded name.
 * - It takes the part of a password after @ for a list of hosts if there is a comma, and names it in its error. So the
 *   address has these signs encoded.
 */
export function newClient(
	url: string,
	options: Options,
	backoff = createReconnectBackoff(systemClock.monotonicMs),
): postgres.Sql {
	const address = new URL(url);
	const { searchParams: query } = address;
	const host = query.get("host") ?? decodeURIComponent(address.hostname);
	const name = decodeURIComponent(address.pathname.slice(1));
	const database = name === "" ? {} : { database: name };
	const given = { onnotice: () => {}, ...options, ...database, ...takenOut(query, ["user", "password"]) };
	// There is no choice with one host: the driver would try the same one again and again, and does not know `any`. A
	// start checks what the server may do.
	takenOut(query, ["target_session_attrs"]);
	if (!query.has("host") && !query.has("port") && !/^[[/]/.test(host)) return paced(address, given, backoff);
	const port = Number(query.get("port") ?? (address.port || PORT_DEFAULT));
	takenOut(query, ["host", "port"]);
	// The driver's types do not name the list form; it would cut a text at each colon and comma.
	const place: object = host.startsWith("/")
		? { path: `${host}/.s.PGSQL.${port}` }
		: { host: [host.replace(/^\[|\]$/g, "")], port: [port] };
	return paced(address, { ...given, ...place }, backoff);
}

/** Makes clients of pooled connections, with these settings of their sessions. */
export function connectTo(url: string, connection: NonNullable<Options["connection"]>): Connect {
	return (hooks, backoff) => newClient(url, { ...hooks, connect_timeout: 5, connection }, backoff);
}

/** Runs `work` with a client of `url`, and ends the client. */
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

/** Removes parameters that are no session settings and that the driver would take for some. */
function takenOut(query: URLSearchParams, names: readonly string[]): Record<string, string> {
	const taken = names.flatMap((name) => {
		const value = query.get(name);
		return value === null ? [] : [[name, value] as const];
	});
	for (const [name] of taken) query.delete(name);
	return Object.fromEntries(taken);
}

/** The driver's reading of the address. */
interface Place {
	readonly path: string | false;
	readonly host: readonly string[];
	readonly port: readonly number[];
}

/**
 * The driver, with our own sockets. The driver's own reconnect without a pause if a socket was closed without an error.
 * They also connect for a client that ended during its pause; that connection stays open without a user.
 *
 * The client ends with its connection. The driver's next session would lack the locks and the path of the first. A
 * statement between a socket's error and its close would never be answered.
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
		// The driver's own first query, for array types: if it is cut off, its rejection is unhandled and ends the process.
		fetch_types: false,
		onclose: gone,
		// The driver's types do not name it.
		...{
			async socket({ path, host, port }: Place) {
				const pauseMs = backoff.pauseMs();
				if (pauseMs > 0) await sleep(systemClock, pauseMs);
				if (ended) throw connectionEnded();
				backoff.made();
				const place = { host: host[0] as string, port: port[0] as number };
				const made = new Socket();
				socket = made;
				// Ends the client before the driver reports the error; until then the driver would accept more statements.
				made.once("error", () => gone(0));
				// In a later tick, once the driver listens to the socket's errors.
				setImmediate(() => (ended ? made.destroy() : made.connect(path === false ? place : { path })));
				// The driver requests a certificate for this name.
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
		// With time to end, it may still connect and come to its end.
		if (how?.timeout === 0) ended = true;
		await end(how);
		ended = true;
		// A server that does not answer does not close either, and the driver waits for the close.
		setTimeout(() => socket?.destroy(), GOODBYE_MS).unref();
	};
	return client;
}
