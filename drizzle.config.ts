import { defineConfig } from "drizzle-kit";

// Tables stand beside their domain; `bun run db:generate` writes the next migration from them.
export default defineConfig({ dialect: "postgresql", schema: "./src/**/*.sql.ts", out: "./src/db/migrations" });
