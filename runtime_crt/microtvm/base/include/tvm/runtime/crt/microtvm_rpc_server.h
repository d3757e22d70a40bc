/* microtvm_rpc_server.h: there is no MicroTVMRpcServerInit() and MicroTVMRpcServerLoop().
 *
 * What they served was a computer with TVM. Here a project with project_type=host_driven has a
 * program that serves, and microtir.host.Session talks to it from Python:
 *
 *     microtir micro create-project DIR ARCHIVE.tar crt --project-option project_type=host_driven
 *
 * A program of your own that is asked by name has the functions of an executor from
 * TVMAotExecutorModule_Register() or TVMGraphExecutorModule_Register().
 */
#error "no MicroTVMRpcServer: make a project with project_type=host_driven; see this header"
