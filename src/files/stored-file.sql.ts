import { bigint, customType, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

const bytea = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/** Files of accounts. Their encrypted bytes are in a blob store. */
export const storedFile = pgTable(
	"stored_file",
	{
		/** `file_…`, sortable by time. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		keyId: text("key_id").notNull(),
		/** `batch` or `batch_output`. */
		purpose: text().notNull(),
		/** Name that the client gave, shortened. No other text in this table comes from a client. */
		filename: text().notNull(),
		/** `writing` until the last part is recorded, then `ready`; `removed` while its bytes are being deleted. */
		state: text().notNull(),
		/** Blob store with the file's bytes: `disk`, `postgres` or `s3`. */
		store: text().notNull(),
		/** Sum of the bytes in recorded parts. */
		bytes: bigint({ mode: "number" }).notNull().default(0),
		parts: integer().notNull().default(0),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull(),
		/** Time of expiry. While writing: when the writer counts as dead. For a removed file: when it was removed. */
		expiresAt: timestamp("expires_at", { withTimezone: true }).notNull(),
	},
	(table) => [
		index("stored_file_account").on(table.accountId, table.id),
		index("stored_file_expires").on(table.expiresAt),
	],
);

/** Recorded parts of files, which never change. */
export const storedFilePart = pgTable(
	"stored_file_part",
	{
		fileId: text("file_id").notNull(),
		number: integer().notNull(),
		/** Offset of the part in the file. */
		start: bigint({ mode: "number" }).notNull(),
		bytes: integer().notNull(),
		/** Name of the blob in the store. New for each attempt, so that attempts do not overwrite each other. */
		blob: text().notNull(),
	},
	(table) => [primaryKey({ columns: [table.fileId, table.number] })],
);

/** Bytes of an account's files. The row with an empty account id is the sum of all accounts. */
export const fileSpace = pgTable("file_space", {
	accountId: text("account_id").primaryKey(),
	files: integer().notNull().default(0),
	bytes: bigint({ mode: "number" }).notNull().default(0),
});

/** Blobs of the `postgres` store, split into pieces. */
export const storedBlob = pgTable(
	"stored_blob",
	{ fileId: text("file_id").notNull(), name: text().notNull(), piece: integer().notNull(), bytes: bytea().notNull() },
	(table) => [primaryKey({ columns: [table.fileId, table.name, table.piece] })],
);
