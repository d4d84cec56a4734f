import { bigint, customType, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

const bytea = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/** Files of accounts: what is known of them. Their bytes lie in a store of blobs, encrypted. */
export const storedFile = pgTable(
	"stored_file",
	{
		/** `file_…`, so sorted by time. */
		id: text().primaryKey(),
		accountId: text("account_id").notNull(),
		/** Whose request made it. */
		keyId: text("key_id").notNull(),
		/** `batch` or `batch_output`. */
		purpose: text().notNull(),
		/** As the client named it, cut; the one text of a client's in this table. */
		filename: text().notNull(),
		/** `writing` until its last part is there, then `ready`; `removed` while its bytes are being deleted. */
		state: text().notNull(),
		/** Where its bytes lie: `disk`, `postgres` or `s3`. */
		store: text().notNull(),
		/** Of its sealed parts. */
		bytes: bigint({ mode: "number" }).notNull().default(0),
		parts: integer().notNull().default(0),
		createdAt: timestamp("created_at", { withTimezone: true }).notNull(),
		/** When it ends; while it is written, when its writer is taken to be gone; once removed, when that was. */
		expiresAt: timestamp("expires_at", { withTimezone: true }).notNull(),
	},
	(table) => [
		index("stored_file_account").on(table.accountId, table.id),
		/** For those that end. */
		index("stored_file_expires").on(table.expiresAt),
	],
);

/** The parts of a file, in order. What has a row here is whole and never changes. */
export const storedFilePart = pgTable(
	"stored_file_part",
	{
		fileId: text("file_id").notNull(),
		number: integer().notNull(),
		/** Where in the file it begins. */
		start: bigint({ mode: "number" }).notNull(),
		bytes: integer().notNull(),
		/** Its name in the store: another one for each attempt, so that no attempt writes over another's. */
		blob: text().notNull(),
	},
	(table) => [primaryKey({ columns: [table.fileId, table.number] })],
);

/** What an account's files take. The row of the empty id counts all of them. */
export const fileSpace = pgTable("file_space", {
	accountId: text("account_id").primaryKey(),
	files: integer().notNull().default(0),
	bytes: bigint({ mode: "number" }).notNull().default(0),
});

/** Encrypted bytes of parts, where they lie in Postgres; a part is cut into pieces. */
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
