import { Socket } from "node:net";
import postgres from "postgres";
import { sleep, systemClock } from "../base/clock.ts";
import { connectionEnded } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";

const PORT_DEFAULT = 5432;

/** What is given up has so long to say so to the server. */
const GOODBYE_MS = 1_000;

type Options = Omit<
	Parameters<typeof postgres>[1] & object,
	"max" | "backoff" | "socket" | "idle_timeout" | "max_lifetime" | "fetch_types"
>;

/**
 * A client of `url`, with one connection in its life, as psql and the queue's own client read it. The driver cuts an IPv6 address off at its
 * first colon, knows no folder of a socket, sends `host`, `port`, `user` and `password` of a query to the server as if they were settings, and asks for a
 * database by its encoded name. Of a password with an @ and a comma it would take the end for hosts, and name them where it finds none:
 * it is given the address with each such sign encoded.
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
	const given = { ...options, ...database, ...takenOut(query, ["user", "password"]) };
	// Of one host there is no choice: the driver would ask the same one again and again, and knows no `any`. A start looks at what it may do.
	takenOut(query, ["target_session_attrs"]);
	if (!query.has("host") && !query.has("port") && !/^[[/]/.test(host)) return paced(address, given, backoff);
	const port = Number(query.get("port") ?? (address.port || PORT_DEFAULT));
	takenOut(query, ["host", "port"]);
	// The driver's types do not name what it takes as a list; a text it would cut at each colon and comma.
	const place: object = host.startsWith("/")
		? { path: `${host}/.s.PGSQL.${port}` }
		: { host: [host.replace(/^\[|\]$/g, "")], port: [port] };
	return paced(address, { ...given, ...place }, backoff);
}

/** What is no setting of a session, which the driver would take it for. */
function takenOut(query: URLSearchParams, names: readonly string[]): Record<string, string> {
	const taken = names.flatMap((name) => {
		const value = query.get(name);
		return value === null ? [] : [[name, value] as const];
	});
	for (const [name] of taken) query.delete(name);
	return Object.fromEntries(taken);
}

/** What the driver has made of the address. */
interface Place {
	readonly path: string | false;
	readonly host: readonly string[];
	readonly port: readonly number[];
}

/**
 * The driver, with sockets of ours. Its own make a connection again at once where one was closed without an error, and one for a
 * client that has ended while it paused, which then stays open with nobody to use it or to end it.
 *
 * With its connection the client ends: of the next one the driver would make a session without the locks and the path of the first,
 * and a statement that it takes between a socket's error and its close it answers never.
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
		// The driver's own first query, for array types: cut in the middle it rejects with nobody to hear it, and that ends the process.
		fetch_types: false,
		onclose: gone,
		// Its types do not name it.
		...{
			async socket({ path, host, port }: Place) {
				const pauseMs = backoff.pauseMs();
				if (pauseMs > 0) await sleep(systemClock, pauseMs);
				if (ended) throw connectionEnded();
				backoff.made();
				const place = { host: host[0] as string, port: port[0] as number };
				const made = new Socket();
				socket = made;
				// Before the driver says so: until then it would take more.
				made.once("error", () => gone(0));
				// Behind this turn, in which the driver begins to listen to its errors.
				setImmediate(() => (ended ? made.destroy() : made.connect(path === false ? place : { path })));
				// By this name the driver asks for a certificate.
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
		// What is given time may still connect, and come to its end.
		if (how?.timeout === 0) ended = true;
		await end(how);
		ended = true;
		// Who does not answer does not close either, and the driver waits for that.
		setTimeout(() => socket?.destroy(), GOODBYE_MS).unref();
	};
	return client;
}
