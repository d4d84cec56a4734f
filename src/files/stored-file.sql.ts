import { bigint, customType, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

const bytea = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/** Files of accounts. Their bytes are encrypted in a store. */
export const storedFile = pgTable(
	"stored_file",
	{
		/** `file_…`, sortable by time. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		keyId: text("key_id").notNull(),
		/** `batch` or `batch_output`. */
		purpose: text().notNull(),
		/** The client's name, shortened; the only text of a client in this table. */
		filename: text().notNull(),
		/** `writing` until the last part is sealed, then `ready`; `removed` while its bytes are being deleted. */
		state: text().notNull(),
		/** Store of its bytes: `disk`, `postgres` or `s3`. */
		store: text().notNull(),
		/** Bytes of sealed parts. */
		bytes: bigint({ mode: "number" }).notNull().default(0),
		parts: integer().notNull().default(0),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull(),
		/** When it expires. While it is written: when its writer counts as dead. Once removed: when that was. */
		expiresAt: timestamp("expires_at", { withTimezone: true }).notNull(),
	},
	(table) => [
		index("stored_file_account").on(table.accountId, table.id),
		index("stored_file_expires").on(table.expiresAt),
	],
);

/** Sealed parts of a file, which never change. */
export const storedFilePart = pgTable(
	"stored_file_part",
	{
		fileId: text("file_id").notNull(),
		number: integer().notNull(),
		/** Offset in the file. */
		start: bigint({ mode: "number" }).notNull(),
		bytes: integer().notNull(),
		/** Name in the store, a new one for each attempt, so that attempts do not overwrite each other. */
		blob: text().notNull(),
	},
	(table) => [primaryKey({ columns: [table.fileId, table.number] })],
);

/** Space used by an account's files. The empty id counts all accounts. */
export const fileSpace = pgTable("file_space", {
	accountId: text("account_id").primaryKey(),
	files: integer().notNull().default(0),
	bytes: bigint({ mode: "number" }).notNull().default(0),
});

/** Blobs in Postgres, cut into pieces. */
export const storedBlob = pgTable(
	"stored_blob",
	{
		fileId: text("file_id").notNull(),
		name: text().notNull(),
		piece: integer().notNull(),
		bytes: bytea().notNull(),
	},
	(table) => [primaryKey({ columns: [table.fileId, table.name, table.piece] })],
);
