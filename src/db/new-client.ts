import postgres from "postgres";

const PORT_DEFAULT = 5432;

/**
 * A client of `url` as psql and the queue's own client read it. The driver cuts an IPv6 address off at its first colon, knows no
 * folder of a socket, and sends the `host` and `port` of a query to the server as if they were settings.
 */
export function newClient(url: string, options: Parameters<typeof postgres>[1] & object): postgres.Sql {
	const address = new URL(url);
	const { searchParams: query } = address;
	const host = query.get("host") ?? decodeURIComponent(address.hostname);
	if (!query.has("host") && !query.has("port") && !/^[[/]/.test(host)) return postgres(url, options);
	const port = Number(query.get("port") ?? (address.port || PORT_DEFAULT));
	for (const name of ["host", "port"]) query.delete(name);
	// The driver's types do not name what it takes as a list; a text it would cut at each colon and comma.
	const place: object = host.startsWith("/")
		? { path: `${host}/.s.PGSQL.${port}` }
		: { host: [host.replace(/^\[|\]$/g, "")], port: [port] };
	return postgres(address.href, { ...options, ...place });
}
