/** An address to listen on, as people write it: `http://host:port`. */
export function addressOf(host: string, port: number | undefined): string {
	return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
