import fs from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";

export interface ServerOwner {
	readonly name: string;
	readonly uid: number;
	readonly gid: number;
}

/**
 * User that runs the server, because PostgreSQL refuses to run as root: the cluster's owner, else `postgres`, else the
 * system's unprivileged user. Undefined if this process is not root. Fault service_unavailable without such a user.
 */
export function serverOwner(cluster: string): ServerOwner | undefined {
	if (process.getuid?.() !== 0) return undefined;
	const users = systemUsers();
	const { uid, gid } = fs.statSync(cluster, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 };
	if (uid !== 0) return { name: users.find((user) => user.uid === uid)?.name ?? String(uid), uid, gid };
	const owner = users.find(({ name }) => name === "postgres") ?? users.find(({ name }) => name === "nobody");
	if (owner === undefined)
		throw new Fault(
			"service_unavailable",
			"PostgreSQL cannot run as root and there is no user `postgres` or `nobody`: set DATABASE_URL.",
		);
	return owner;
}

function systemUsers(): ServerOwner[] {
	const lines = fs.readFileSync("/etc/passwd", "utf8").split("\n");
	return lines.map((line) => {
		const [name = "", , uid, gid] = line.split(":");
		return { name, uid: Number(uid), gid: Number(gid) };
	});
}

/** Gives a folder that root created or restored to the server's user. Symbolic links are changed, not their targets. */
export function changeOwner(owner: ServerOwner | undefined, path: string): void {
	if (owner === undefined) return;
	const found = fs.lstatSync(path);
	if (found.uid === owner.uid) return;
	if (found.isDirectory()) for (const name of fs.readdirSync(path)) changeOwner(owner, join(path, name));
	fs.lchownSync(path, owner.uid, owner.gid);
}
