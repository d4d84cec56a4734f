import postgres from "postgres";

const PORT_DEFAULT = 5432;

/**
 * A client of `url` as psql and the queue's own client read it. The driver cuts an IPv6 address off at its first colon, knows no
 * folder of a socket, sends the `host` and `port` of a query to the server as if they were settings, and asks for a database by
 * its encoded name. Of a password with an @ and a comma it would take the end for hosts, and name them where it finds none:
 * it is given the address with each such sign encoded.
 */
export function newClient(url: string, options: Parameters<typeof postgres>[1] & object): postgres.Sql {
	const address = new URL(url);
	const { searchParams: query } = address;
	const host = query.get("host") ?? decodeURIComponent(address.hostname);
	const name = decodeURIComponent(address.pathname.slice(1));
	const database = name === "" ? {} : { database: name };
	if (!query.has("host") && !query.has("port") && !/^[[/]/.test(host))
		return postgres(address.href, { ...options, ...database });
	const port = Number(query.get("port") ?? (address.port || PORT_DEFAULT));
	for (const setting of ["host", "port"]) query.delete(setting);
	// The driver's types do not name what it takes as a list; a text it would cut at each colon and comma.
	const place: object = host.startsWith("/")
		? { path: `${host}/.s.PGSQL.${port}` }
		: { host: [host.replace(/^\[|\]$/g, "")], port: [port] };
	return postgres(address.href, { ...options, ...database, ...place });
}
