/* microtvm_rpc_server.h: microtir has no MicroTVMRpcServerInit() and MicroTVMRpcServerLoop().
 *
 * These functions served a computer with TVM. With microtir, the program of a project with
 * project_type=host_driven is the server, and microtir.host.Session talks to it from Python:
 *
 *     microtir micro create-project DIR ARCHIVE.tar crt --project-option project_type=host_driven
 *
 * To call an executor by the names of its functions in your own program, register them with
 * TVMAotExecutorModule_Register() or TVMGraphExecutorModule_Register().
 */
#error "microtir has no MicroTVMRpcServer: use project_type=host_driven, as this header explains"
