import { jsonb, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { DeployedModel } from "./deployed-model.ts";

/**
 * Models and servers of each gateway, written when they change, for the console. The row of a gateway that left stays,
 * so that the console can show its models while no gateway is live.
 */
export const gatewayReport = pgTable("gateway_report", {
	instanceId: text("instance_id").primaryKey(),
	models: jsonb().$type<readonly DeployedModel[]>().notNull(),
	/** JSON list of `ReplicaView`. */
	replicas: jsonb().notNull(),
	at: timestamp({ withTimezone: true }).notNull(),
});
