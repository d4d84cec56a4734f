import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { atEnd, temporaryFolder } from "./at-end.ts";
import { waitFor } from "./wait.ts";

const PROGRAM = Bun.which("pgbouncer", { PATH: `${process.env.PATH}:/usr/sbin` });

export const HAS_PGBOUNCER = PROGRAM !== null;
if (!HAS_PGBOUNCER) console.warn("pgbouncer is not installed: its tests are skipped (apt-get install pgbouncer)");

/** Starts PgBouncer for this database until the end of the file. Every database name leads to this database. */
export async function startPgbouncer(url: string, mode: "session" | "transaction", settings = "") {
	const { hostname, port, username, password, pathname, search } = new URL(url);
	const folder = temporaryFolder();
	const free = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
	const listenPort = free.port;
	free.stop(true);
	const file = join(folder, "pgbouncer.ini");
	const users = join(folder, "users.txt");
	writeFileSync(
		file,
		`[databases]
* = host=${hostname} port=${port} dbname=${pathname.slice(1)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
default_pool_size = 40
pool_mode = ${mode}
${settings}
`,
	);
	writeFileSync(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`);
	for (const path of [folder, file, users]) chmodSync(path, 0o755);
	const asOther = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
	const child = Bun.spawn([PROGRAM ?? "", "-q", ...asOther, file], { stdout: "ignore", stderr: "ignore" });
	atEnd(async () => {
		child.kill("SIGKILL");
		await child.exited;
	});
	const isOpen = () =>
		Bun.connect({ hostname: "127.0.0.1", port: listenPort, socket: { data() {} } }).then(
			(socket) => {
				socket.end();
				return true;
			},
			() => false,
		);
	await waitFor(isOpen, "pgbouncer");
	return { port: listenPort, url: `postgres://${username}:${password}@127.0.0.1:${listenPort}${pathname}${search}` };
}
