import { jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { DeployedModel } from "./deployed-model.ts";

/**
 * Each gateway's models and server states for the console, written on change; no decision depends on it. The row of a
 * gateway that left stays, to be shown when no gateway is live.
 */
export const gatewayReport = pgTable("gateway_report", {
	instanceId: text("instance_id").primaryKey(),
	models: jsonb().$type<readonly DeployedModel[]>().notNull(),
	/** As `ReplicaView`. */
	replicas: jsonb().notNull(),
	at: timestamp({ withTimezone: true }).notNull(),
});
