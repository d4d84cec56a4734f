import { jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { DeployedModel } from "./deployed-model.ts";

/**
 * What each gateway has in force, for the console to read: its models and how it sees their servers. Written when it
 * changes; nobody decides by it. A gateway that left keeps its row, or there would be nothing to show without one.
 */
export const gatewayReport = pgTable("gateway_report", {
	instanceId: text("instance_id").primaryKey(),
	models: jsonb().$type<readonly DeployedModel[]>().notNull(),
	/** As `ReplicaView`. */
	replicas: jsonb().notNull(),
	at: timestamp({ withTimezone: true }).notNull(),
});
